"""The top of the house: ``build``, ``lower`` and the command line."""

from tilewright.driver.build_module import OperatorModule, build, get_binds, lower, schedule_to_module

__all__ = ["OperatorModule", "build", "get_binds", "lower", "schedule_to_module"]
