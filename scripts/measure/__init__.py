"""Measurements of trained models, beyond their scores."""
