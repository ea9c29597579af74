"""Corpora read from files, the hub or installed packages."""
