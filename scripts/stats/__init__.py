"""Statistics: intervals of differences, agreement with the paper, and the hierarchical model of effects over tables."""
