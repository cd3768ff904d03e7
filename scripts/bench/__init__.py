"""Measurements of speed, run by hand; nothing in them is a test."""
