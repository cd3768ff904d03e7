"""Published runs: their tables, predictions, and scores computed from these."""
