"""Constructed schedules for processors: every size is computed from the description of the target."""
