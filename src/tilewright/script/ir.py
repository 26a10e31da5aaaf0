"""The decorators of modules, by their later names: ``from tilewright.script import ir as I``."""

from tilewright.script.module import ir_module

__all__ = ["ir_module"]
