"""The top of the house: ``build``, ``lower``, ``compile_aot`` and the command line."""

from tilewright.driver.aot import AOTModule, compile_aot
from tilewright.driver.build_module import OperatorModule, build, get_binds, lower, schedule_to_module

__all__ = ["AOTModule", "OperatorModule", "build", "compile_aot", "get_binds", "lower", "schedule_to_module"]
