"""The paper judged by our runs: statements, claims in words, three seeds, and other choices of options."""
