"""An audit: the question, what is measured for it, the verdict and the result. No Hydra, no W&B."""
