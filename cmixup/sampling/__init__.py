"""Draws of a partner j for i from a kernel over arrays, without splits or batches."""
