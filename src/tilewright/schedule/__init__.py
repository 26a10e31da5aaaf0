"""Constructed schedulers, one folder a kind of device: every size is computed from the description of the target."""
