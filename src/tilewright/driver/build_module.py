"""``lower`` and ``build`` where users of the driver look for them; they are made in ``compile``."""

from tilewright.compile import OperatorModule, build, get_binds, lower, schedule_to_module

__all__ = ["OperatorModule", "build", "get_binds", "lower", "schedule_to_module"]
