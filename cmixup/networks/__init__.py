"""Networks that the wheel holds, so that runs with them predict without a checkout."""
