"""Which runs are missing, what they cost, in what order they are trained, and which are trained again."""
