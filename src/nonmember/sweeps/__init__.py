"""Many audits as one graph: what they need, in which order, what that costs, who makes it, how far it is."""
