"""Executors that show what happens inside a model."""
