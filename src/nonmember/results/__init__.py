"""Results of audits: schema, seals, reading what is on disk."""
