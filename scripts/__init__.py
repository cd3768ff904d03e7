"""Commands of the reproduction; each runs as `python -m scripts.<name>`."""
