"""This package puts mixing by label into anybody's training code; it knows sampling and mixing, and no method."""
