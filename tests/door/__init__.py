"""CI walks in by the front door: README's commands as typed, and every target of `make help`."""
