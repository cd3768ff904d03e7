"""Datasets, one file each; `base` is what they share, `fetch` gets their files."""
