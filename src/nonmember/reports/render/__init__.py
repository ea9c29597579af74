"""Tables and figures as Markdown, CSV, SVG, PNG and HTML."""
