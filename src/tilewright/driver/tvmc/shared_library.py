"""A model that is one shared library: reading its contents without running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.package_format import PackageContent
from tilewright.driver.tvmc.tensors import TensorInfo, graph_tensors
from tilewright.runtime.aot_model import AOTModel, TensorDescription
from tilewright.runtime.graph_factory import GraphExecutorFactory
from tilewright.runtime.loading import load_module
from tilewright.runtime.vm import VMModule
from tilewright.runtime.vm_program import VMParameter


def read_shared_library(path: Path) -> PackageContent:
    """The model of a library that ``tilewright compile -o model.so`` or ``export_library`` wrote."""
    if not path.is_file():
        raise TVMCException(f"there is no library {path}")
    library = load_module(path)
    for module in library.imported_modules:
        if isinstance(module, GraphExecutorFactory):
            inputs, outputs = graph_tensors(module.graph_json, list(module.params))
            return PackageContent(
                *("classic", "graph", path.name, b"", module.graph_json, module.params),
                *(module.name, library.target, inputs, outputs),
            )
        if isinstance(module, VMModule):
            return PackageContent(
                *("classic", "vm", path.name, b"", None, {}),
                *("default", library.target, _parameters(module.program.function("main").parameters)),
                _parameters(module.program.outputs),
            )
        if isinstance(module, AOTModel):
            return PackageContent(
                *("classic", "aot", path.name, b"", None, {}),
                *(module.name, library.target, _described(module.inputs), _described(module.outputs)),
                module.workspace_bytes,
            )
    raise TVMCException(
        f"{path} contains no model, only functions: {', '.join(library.function_names) or 'none with a name'}. "
        "A model is written by 'tilewright compile', or by export_library of what relay.build returns"
    )


def _parameters(parameters: Sequence[VMParameter]) -> list[TensorInfo]:
    return [TensorInfo(one.name, one.shape, str(one.dtype or "float32")) for one in parameters]


def _described(tensors: Sequence[TensorDescription]) -> list[TensorInfo]:
    return [TensorInfo(one.name, one.shape, one.dtype) for one in tensors]
