"""The machine and the code that run: devices, kernels, packages, commits, locks, and what is read."""
