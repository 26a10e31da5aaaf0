"""Darknet's configuration files: sections in brackets, the first for the network, then one for each layer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilewright.support.errors import ModelError

NETWORK: Final = ("net", "network")
"""What the first section is called."""
_OTHER_NAMES: Final = {
    "conv": "convolutional",
    "conn": "connected",
    "max": "maxpool",
    "avg": "avgpool",
    "soft": "softmax",
    "batchnorm": "batchnorm",
}


@dataclass(frozen=True)
class Section:
    """A section: what it is, its options as text, and the line that it begins at."""

    kind: str
    options: Mapping[str, str]
    line: int


def read_configuration(given: Any) -> tuple[Section, list[Section]]:
    """The section of the network and those of the layers, from a path or from text."""
    if isinstance(given, os.PathLike) or (isinstance(given, str) and "[" not in given):
        path = Path(given)
        if not path.is_file():
            raise ModelError(f"there is no Darknet configuration {path}")
        return _parsed(_text(path.read_bytes(), str(path)), str(path))
    if isinstance(given, str):
        return _parsed(given, "the configuration")
    raise ModelError(
        f"a Darknet network is the path or the text of its cfg file, not a {type(given).__name__}; with TVM it was "
        "what Darknet's library had loaded, here the files are read directly"
    )


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ModelError(f"{where} is not a Darknet configuration: it is not text ({error})") from error


def _parsed(text: str, where: str) -> tuple[Section, list[Section]]:
    found: list[Section] = []
    options: dict[str, str] = {}
    for number, given in enumerate(text.splitlines(), 1):
        line = "".join(given.split())
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            name = line.strip("[]")
            options = {}
            found.append(Section(_OTHER_NAMES.get(name, name), options, number))
            continue
        name, equals, value = line.partition("=")
        if not equals or not found:
            raise ModelError(f"{where}, line {number}: {given[:80]!r} is not an option of a section")
        # Darknet takes the first of options of one name.
        options.setdefault(name, value)
    if not found or found[0].kind not in NETWORK:
        raise ModelError(f"{where} is not a Darknet configuration: it does not begin with [net]")
    if len(found) == 1:
        raise ModelError(f"{where} has no layers")
    return found[0], found[1:]
