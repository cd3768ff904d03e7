"""When does mixing help? Many real tables, one budget, rules that are fixed before the first run."""
