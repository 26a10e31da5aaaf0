"""Executors under their older names."""

from tilewright.contrib import graph_executor, graph_runtime
from tilewright.contrib.debugger import debug_executor, debug_runtime


def test_same_classes() -> None:
    """The modules hold the very classes and functions of the newer ones."""
    assert graph_runtime.GraphModule is graph_executor.GraphModule
    assert graph_runtime.create is graph_executor.create
    assert debug_runtime.GraphModuleDebug is debug_executor.GraphModuleDebug
    assert debug_runtime.create is debug_executor.create
