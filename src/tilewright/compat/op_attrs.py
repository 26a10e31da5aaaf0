"""``relay.op.op_attrs``: the attributes of all operators, for ``isinstance(call.attrs, op_attrs.Conv2DAttrs)``."""

from __future__ import annotations

from typing import Any

from tilewright.ir.attrs import ATTRIBUTE_CLASSES
from tilewright.relay import op as operators


def attribute_classes(path: str) -> dict[str, Any]:
    """The classes that the operators of ``relay.op`` define, by name."""
    package = f"{operators.__name__}."
    return {each.__name__: each for each in ATTRIBUTE_CLASSES.values() if each.__module__.startswith(package)}
