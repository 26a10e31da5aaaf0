"""``lower`` and ``build`` under the driver's name; they are defined in ``te.build_module``."""

from tilewright.te.build_module import OperatorModule, build, get_binds, lower, schedule_to_module

__all__ = ["OperatorModule", "build", "get_binds", "lower", "schedule_to_module"]
