"""The page over many audits."""
