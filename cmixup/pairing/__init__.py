"""Who is mixed with whom."""
