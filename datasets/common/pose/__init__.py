"""Views of objects: rendering, reading, and the tasks drawn from them."""
