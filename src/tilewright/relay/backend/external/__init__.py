"""Functions of a module that other code generators compile: their names, and their code."""
