"""How the columns of tables and series become features; pandas is imported here and nowhere below."""
