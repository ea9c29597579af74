"""Evidence that a stranger can check: questions sealed beforehand, results in signed bundles."""
