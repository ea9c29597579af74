"""What all reports share: grids of results, numbers, groups of tests."""
