"""Analyses of trained models and images, and simulations: each file has `KEYS`, its command line, and `run(args)`."""
