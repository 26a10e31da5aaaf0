"""TVM's modules with computed names: from the path of a module to the function that returns them.

A function is written "package.module:function". It is called with the module's path (without the package's name) when
the module is first imported, and returns a dictionary of its attributes.
"""

from __future__ import annotations

from typing import Final

_SCHEDULES: Final = "tilewright.compat.named_schedules:attributes"
_STRATEGIES: Final = "tilewright.compat.named_strategies:attributes"

PROVIDERS: Final[dict[str, str]] = {
    "relay.op.op_attrs": "tilewright.compat.op_attrs:attribute_classes",
    "relay.op.strategy": _STRATEGIES,
    "relay.op.strategy.generic": _STRATEGIES,
    "relay.op.strategy.x86": _STRATEGIES,
    "topi.cuda": _SCHEDULES,
    "topi.cuda.scan": _SCHEDULES,
    "topi.cuda.sort": _SCHEDULES,
    "topi.generic": _SCHEDULES,
    "topi.generic.default": _SCHEDULES,
    "topi.generic.injective": _SCHEDULES,
    "topi.generic.nn": _SCHEDULES,
    "topi.generic.others": _SCHEDULES,
    "topi.x86": _SCHEDULES,
}
