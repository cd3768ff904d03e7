"""From reports to tables, figures and pages."""
