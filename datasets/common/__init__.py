"""What several datasets share; a dataset itself is a file one room up."""
