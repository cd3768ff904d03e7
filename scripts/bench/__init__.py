"""Speed and estimators, measured by hand; nothing here is a test."""
