"""Kinds of models with weights, one a file; trained ones are in `training`, endpoints in `endpoints`."""
