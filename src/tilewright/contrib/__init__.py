"""Bridges to tools and libraries outside: compilers and linkers, other tensor libraries, temporary files."""
