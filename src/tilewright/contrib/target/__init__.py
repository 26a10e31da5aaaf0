"""Formats that modules are written to."""
