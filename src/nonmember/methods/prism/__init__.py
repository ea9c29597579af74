"""PRISM: rank agreement of target, reference and distilled reference, and its gates."""
