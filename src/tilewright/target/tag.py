"""Target tags: names for the descriptions of known devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.support.errors import TargetError
from tilewright.target.tag_table import TAGS
from tilewright.target.target import Target


def list_tags() -> dict[str, Target]:
    """Every tag with its target."""
    return {name: Target(name) for name in TAGS}


def register_tag(name: str, config: Mapping[str, Any], override: bool = False) -> Target:
    """Let ``name`` stand for the described target, and return that target.

    A name that is taken is refused, unless ``override``. A description that is not a valid target changes nothing.
    """
    if not name or any(character.isspace() for character in name) or name.startswith(("-", "{")):
        raise TargetError(
            f"{name!r} cannot be a target tag: it must be one word that can start a target string"
        )
    if name in TAGS and not override:
        raise TargetError(f"target tag {name!r} is already registered; pass override=True to replace it")
    checked = Target(config)
    TAGS[name] = {option: value for option, value in checked.export().items() if option != "tag"}
    return Target(name)
