"""Videos: reading them, choosing clips, and generated ones to try both."""
