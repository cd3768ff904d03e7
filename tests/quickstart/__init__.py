"""What CI tries first: README's commands as typed, and every target of `make help`."""
