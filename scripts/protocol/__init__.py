"""The rules of the study, and its cells: how they are trained and stored."""
