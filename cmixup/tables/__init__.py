"""How a table's columns become features, fitted on training rows; pandas is imported here and nowhere below."""
