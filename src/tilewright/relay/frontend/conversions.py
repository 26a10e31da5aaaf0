"""Formats that no frontend reads yet, and how a model in one becomes ONNX. A frontend of the same name replaces one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NoReturn

from tilewright.support.errors import ModelError


class FormatError(ModelError):
    """A model's format is unknown, cannot be told, or cannot be read."""


class NoSuchModel(FormatError, FileNotFoundError):
    """There is no file of this name."""


@dataclass(frozen=True)
class Conversion:
    """A format that has to be converted: ``way`` says how. Its files have ``magic`` at ``offset``."""

    name: str
    suffixes: tuple[str, ...]
    way: str
    magic: bytes = b""
    offset: int = 0

    def sniff(self, head: bytes) -> bool:
        """True if a file that begins like this is of the format."""
        return bool(self.magic) and head[self.offset :].startswith(self.magic)

    def load(self, path: str, shape: Any = None, **options: Any) -> NoReturn:
        """Say that there is no importer, and what to do."""
        raise FormatError(
            f"{path} cannot be read: models in the format {self.name} are not in this version. "
            f"Convert it to ONNX: {self.way}"
        )


CONVERSIONS: Final[tuple[Conversion, ...]] = ()
"""None at present: every format that TVM reads has a frontend."""
