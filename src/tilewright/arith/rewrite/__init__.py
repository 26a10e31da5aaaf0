"""The rules of the rewriting simplifier, one file a family of nodes."""
