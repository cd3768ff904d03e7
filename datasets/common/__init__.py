"""Code that several datasets share; a dataset itself is a file of the folder above."""
