"""Speed, measured by hand and by one clock; nothing here is a test."""
