"""Hydra configs: typed roots, what a config may do, and objects built from them."""
