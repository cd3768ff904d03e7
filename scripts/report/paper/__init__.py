"""What our runs say of the paper: statements, claims in words, and what three seeds or other choices would show."""
