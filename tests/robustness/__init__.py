"""Attacks on the project, made for real: `make reliability`, `make mutants` and `make wheel-check` run them."""
