"""Statistics of the study: what a method changes on each table, on their mean and on a new one."""
