"""Attacks on the project, made for real: each file is a trial with a function `run`."""
