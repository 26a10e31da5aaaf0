"""Which function gives the names of a module that exists as data: module path to ``package.module:function``.

The function is called with the module path and gives the names with their values. A path of a module that exists as a
file adds names to that module.
"""

from __future__ import annotations

from typing import Final

_SCHEDULES: Final = "tilewright.compat.named_schedules:attributes"
_TESTING: Final = "tilewright.compat.testing_schedules:names"
_STRATEGIES: Final = "tilewright.compat.named_strategies:attributes"

PROVIDERS: Final[dict[str, str]] = {
    "topi.generic": _SCHEDULES,
    "topi.generic.default": _SCHEDULES,
    "topi.generic.injective": _SCHEDULES,
    "topi.generic.nn": _SCHEDULES,
    "topi.generic.others": _SCHEDULES,
    "topi.x86": _SCHEDULES,
    "topi.testing": _TESTING,
    "topi.testing.common": _TESTING,
    "relay.op.strategy": _STRATEGIES,
    "relay.op.strategy.generic": _STRATEGIES,
    "relay.op.strategy.x86": _STRATEGIES,
}
