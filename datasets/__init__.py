"""Datasets, one file each; `datasets.common` holds the code that several share."""
