"""Who is mixed with whom: pairings know the training split and the order of its rows."""
