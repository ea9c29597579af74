"""Corpora that a model writes, or that are chosen by a model's scores."""
