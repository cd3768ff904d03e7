"""What finished runs say: records that are published, and tables, ranks and statistics of them."""
