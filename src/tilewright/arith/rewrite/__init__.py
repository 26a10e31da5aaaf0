"""The rules of the rewriting simplifier, one file per family of nodes."""
