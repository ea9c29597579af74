"""Where a run is logged besides the disk: W&B, a CSV file, or nowhere."""
