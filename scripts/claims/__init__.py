"""Sentences that are held to records: the pages' claims, verdicts beside the paper, and the map."""
