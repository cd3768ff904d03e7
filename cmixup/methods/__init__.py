"""Training methods: every file has a class or function that a configuration names, or a base of such a one."""
