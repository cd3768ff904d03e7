"""Datasets, one file each; what several share is in `datasets.common`."""
