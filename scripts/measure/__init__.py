"""Measurements that need more than records: trained models, raw images, or a simulation of their own.

Each is a file with `KEYS`, the keys of its command line, and `run(given)`, which writes numbers, tables and figures.
"""
