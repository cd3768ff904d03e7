"""How new files and arrays of the user become inputs of a network; those that need pandas are in tables/."""
