"""The error class of the commands on models."""

from __future__ import annotations

from tilewright.support.errors import ModelError


class TVMCException(ModelError):
    """A command cannot do what was asked; says why, and what to do."""
