"""What needs trained models, raw images or a simulation: each file has `KEYS`, its command line, and `run(given)`."""
