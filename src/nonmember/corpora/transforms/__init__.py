"""Corpora made of other corpora: cleaning, splits, mixtures, orders."""
