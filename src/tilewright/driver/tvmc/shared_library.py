"""A model that is one shared library: reading its contents without running it."""

from __future__ import annotations

from pathlib import Path

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.package_format import PackageContent
from tilewright.driver.tvmc.tensors import TensorInfo, graph_tensors
from tilewright.runtime.graph_factory import GraphExecutorFactory
from tilewright.runtime.loading import load_module
from tilewright.runtime.vm import VMModule


def read_shared_library(path: Path) -> PackageContent:
    """The model of a library that ``tilewright compile -o model.so`` or ``export_library`` wrote."""
    if not path.is_file():
        raise TVMCException(f"there is no library {path}")
    for module in load_module(path).imported_modules:
        if isinstance(module, GraphExecutorFactory):
            inputs, outputs = graph_tensors(module.graph_json, list(module.params))
            return PackageContent(
                *("classic", "graph", path.name, b"", module.graph_json, module.params),
                *(module.name, "", inputs, outputs),
            )
        if isinstance(module, VMModule):
            return PackageContent(
                *("classic", "vm", path.name, b"", None, {}),
                *("default", "", _parameters(module), []),
            )
    raise TVMCException(
        f"{path} contains no model that can be run by name; run an ahead-of-time model from its package"
    )


def _parameters(module: VMModule) -> list[TensorInfo]:
    parameters = module.program.function("main").parameters
    return [TensorInfo(one.name, one.shape, str(one.dtype or "float32")) for one in parameters]
