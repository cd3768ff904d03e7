"""Training methods, one file each. Nothing is re-exported, so that no function hides the module of its name."""
