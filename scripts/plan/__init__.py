"""Which runs are missing, their cost, the order of their training, and which are trained again."""
