"""Own tables: read from text, made into numbers, split."""
