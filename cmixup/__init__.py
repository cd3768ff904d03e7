"""C-Mixup and mixing for regression."""
