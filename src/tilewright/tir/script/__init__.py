"""TVMScript: loop-level programs as Python text, printed and parsed."""
