"""The operators of the graph level, one definition each, by family."""
