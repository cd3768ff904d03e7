"""The engine: batches, losses, optimisers, stacks of models, their training, and the contract of a method."""
