"""The name of ``debug_executor`` before TVM 0.8."""

from tilewright.contrib.debugger.debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
