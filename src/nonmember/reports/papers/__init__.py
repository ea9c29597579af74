"""One folder per report: tables, figures, published numbers."""
