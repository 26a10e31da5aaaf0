"""From graph-level programs to something that runs."""
