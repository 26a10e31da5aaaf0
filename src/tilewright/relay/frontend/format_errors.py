"""Errors about the format of a model's file."""

from __future__ import annotations

from tilewright.support.errors import ModelError


class FormatError(ModelError):
    """A model's format is unknown, cannot be told, or cannot be read."""


class NoSuchModel(FormatError, FileNotFoundError):
    """The file does not exist."""
