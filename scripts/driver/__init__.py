"""From a configuration to the folder of a run."""
