"""Formats that modules are exported to."""
