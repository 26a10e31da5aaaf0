"""A model that is one shared library: reading its contents without running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.graph_memory import arena_bytes
from tilewright.driver.tvmc.library_content import read_library
from tilewright.driver.tvmc.package_format import PackageContent
from tilewright.driver.tvmc.tensors import TensorInfo, graph_tensors, tensor_info
from tilewright.runtime.aot_model import TensorDescription
from tilewright.runtime.graph_factory import GraphExecutorFactory
from tilewright.runtime.vm import VMModule
from tilewright.runtime.vm_program import VMParameter, VMProgram


def read_shared_library(path: Path) -> PackageContent:
    """The model of a library that ``tilewright compile -o model.so`` or ``export_library`` wrote."""
    if not path.is_file():
        raise TVMCException(f"there is no library {path}")
    library = read_library(path)
    model = library.model
    if model is None:
        raise TVMCException(
            f"{path} contains no model, only functions: {', '.join(library.functions) or 'none of ours'}. "
            "'tilewright compile' writes models, and so does export_library of what relay.build returns"
        )
    if isinstance(model, GraphExecutorFactory):
        inputs, outputs = graph_tensors(model.graph_json, list(model.params))
        return PackageContent(
            *("classic", "graph", path.name, b"", model.graph_json, model.params),
            *(model.name, library.target, inputs, outputs, arena_bytes(model.graph_json)),
        )
    if isinstance(model, VMModule):
        program = model.program
        inputs = _parameters(program, program.function("main").parameters)
        return PackageContent(
            *("classic", "vm", path.name, b"", None, {}),
            *("default", library.target, inputs, _parameters(program, program.outputs)),
        )
    return PackageContent(
        *("classic", "aot", path.name, b"", None, {}),
        *(model.name, library.target, _described(model.inputs), _described(model.outputs)),
        model.workspace_bytes,
    )


def _parameters(program: VMProgram, parameters: Sequence[VMParameter]) -> list[TensorInfo]:
    names = program.dimension_names
    return [tensor_info(one.name, one.shape, str(one.dtype or "float32"), names) for one in parameters]


def _described(tensors: Sequence[TensorDescription]) -> list[TensorInfo]:
    return [TensorInfo(one.name, one.shape, one.dtype) for one in tensors]
