"""Backbones, one file each."""
