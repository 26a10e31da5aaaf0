"""The error class of the commands on models."""

from __future__ import annotations

from tilewright.support.errors import ModelError


class TVMCException(ModelError):
    """A command cannot do what was asked; says why, and what to do."""


class NoSuchModelFile(TVMCException, FileNotFoundError):
    """There is no model of this name."""


def of_format(problem: ModelError) -> TVMCException:
    """What a frontend says, as an error of a command."""
    kind = NoSuchModelFile if isinstance(problem, FileNotFoundError) else TVMCException
    return kind(str(problem))
