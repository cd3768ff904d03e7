"""Promises of results/reliability.md tried with real processes, signals, files and locks: `make reliability`."""
