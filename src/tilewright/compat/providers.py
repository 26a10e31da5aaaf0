"""Modules of TVM's whose names are computed: from the path of a module to the function that gives them.

A function stands as "package.module:function". It is called with the module's path (without the package's name) when
the module is first imported, and gives a dictionary of its attributes.
"""

from __future__ import annotations

from typing import Final

PROVIDERS: Final[dict[str, str]] = {
    "relay.op.op_attrs": "tilewright.compat.op_attrs:attribute_classes",
}
