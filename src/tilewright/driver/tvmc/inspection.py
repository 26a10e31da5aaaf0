"""The contents of a model or a package."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.frontends import load_model
from tilewright.driver.tvmc.library_content import LibraryContent, read_library
from tilewright.driver.tvmc.model import TVMCModel, TVMCPackage
from tilewright.driver.tvmc.tensors import TensorInfo, module_inputs, module_outputs
from tilewright.ir.op import Op
from tilewright.relay.analysis import get_total_mac_number, post_order_visit
from tilewright.relay.expr import Call, Constant
from tilewright.relay.frontend.common import Unsupported
from tilewright.relay.frontend.common.description import Described, Tensor, Weights
from tilewright.relay.frontend.format_errors import FormatError
from tilewright.relay.frontend.registry import find_frontend, guess_frontend
from tilewright.runtime.aot_model import AOTModel
from tilewright.runtime.artefact import check_model_library, read_members
from tilewright.runtime.vm import VMModule
from tilewright.runtime.vm_program import Opcode
from tilewright.support.errors import TilewrightError

NOTHING_TO_RUN = "__nop"
"""The graph's function name for a pure reshape."""


def unsupported_operators(path: str, model_format: str | None = None) -> list[Unsupported]:
    """The operators of a model that cannot be imported, with the nodes that use them."""
    if not Path(path).is_file():
        raise TVMCException(f"there is no model {path}")
    frontend = find_frontend(model_format) if model_format else guess_frontend(path)
    if frontend.list_unsupported is None:
        raise TVMCException(
            f"the frontend {frontend.name!r} cannot list what it does not support: import the model, and read the error"
        )
    return list(frontend.list_unsupported(path))


def inspect_model(
    path: str, model_format: str | None = None, shapes: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Inputs, outputs, operators and parameters of a model.

    What its file says is taken from there, so that a model that cannot be imported is described too; types and shapes
    that follow from it, and the work, are those of the imported model.
    """
    if not Path(path).is_file():
        raise TVMCException(f"there is no model {path}")
    try:
        frontend = find_frontend(model_format) if model_format else guess_frontend(path)
    except FormatError as error:
        raise TVMCException(str(error)) from error
    described = None if frontend.describe is None else frontend.describe(path)
    problem: TilewrightError | None = None
    model: TVMCModel | None = None
    try:
        model = load_model(path, model_format, shapes)
    except TilewrightError as error:
        if described is None:
            raise
        problem = error
    if described is None:
        assert model is not None
        described = _of_module(model)
    inputs, outputs = described.inputs, described.outputs
    if model is not None:
        inputs = _merged(module_inputs(model.mod, model.params), inputs)
        outputs = _merged(module_outputs(model.mod), outputs)
    total = _total(described.weights.values())
    return {
        "file": path,
        "kind": "model",
        "format": described.format,
        "bytes": Path(path).stat().st_size,
        "producer": described.producer,
        "versions": dict(described.versions),
        "inputs": [_tensor_json(one) for one in inputs],
        "outputs": [_tensor_json(one) for one in outputs],
        "operators": dict(Counter(dict(described.operators)).most_common()),
        "parameters": {
            **asdict(total),
            "stored": {name: asdict(one) for name, one in described.weights.items()},
        },
        "multiply_accumulates": None if model is None else _work(model),
        "problem": None if problem is None else str(problem),
    }


def _of_module(model: TVMCModel) -> Described:
    """For formats that do not describe themselves: what the imported model shows."""
    operators: Counter[str] = Counter()
    constants: list[Any] = []

    def count(expr: Any) -> None:
        if isinstance(expr, Call):
            operators[expr.op.name if isinstance(expr.op, Op) else "call"] += 1
        elif isinstance(expr, Constant):
            constants.append(expr.data)

    post_order_visit(model.mod["main"], count)
    weights = {"parameters": _weights(list(model.params.values())), "constants": _weights(constants)}
    return Described("module", operators=operators, weights=weights)


def _weights(values: Sequence[Any]) -> Weights:
    arrays = [value.numpy() for value in values]
    return Weights(len(arrays), sum(one.size for one in arrays), sum(one.nbytes for one in arrays))


def _total(weights: Any) -> Weights:
    found = list(weights)
    return Weights(
        sum(one.tensors for one in found),
        sum(one.elements for one in found),
        sum(one.bytes for one in found),
    )


def _merged(known: Sequence[TensorInfo], declared: Sequence[Tensor]) -> list[Tensor]:
    """The imported model's tensors; sizes that are open there have the names that the file gives them."""
    names = {one.name: one.shape for one in declared}
    merged = []
    for one in known:
        named = names.get(one.name)
        if named is None or len(named) != len(one.shape):
            named = (None,) * len(one.shape)
        sizes = [
            size if size is not None else name if isinstance(name, str) else None
            for size, name in zip(one.shape, named, strict=True)
        ]
        merged.append(Tensor(one.name, one.dtype, tuple(sizes)))
    return merged


def _tensor_json(tensor: Tensor) -> dict[str, Any]:
    shape = None if tensor.shape is None else list(tensor.shape)
    return {"name": tensor.name, "shape": shape, "dtype": tensor.dtype}


def _work(model: TVMCModel) -> int | None:
    """Multiply-accumulates; None where sizes are not known."""
    try:
        return int(get_total_mac_number(model.mod["main"]))
    except (TilewrightError, TypeError, ValueError):
        return None


def inspect_package(path: str) -> dict[str, Any]:
    """Executor, target, inputs, outputs, kernels, parameters and memory of a package."""
    package = TVMCPackage(path)
    content = package.content
    library = _library(package)
    kernels: Counter[str] = Counter()
    if content.graph is not None:
        for node in json.loads(content.graph)["nodes"]:
            name = node.get("attrs", {}).get("func_name", NOTHING_TO_RUN)
            if name != NOTHING_TO_RUN:
                kernels[name] += 1
    constants = [value.numpy().nbytes for value in content.params.values()]
    count, size = len(constants), sum(constants)
    if isinstance(library.model, VMModule):
        program = library.model.program
        kernels.update(
            program.kernels[one.operands[0]].name
            for function in program.functions
            for _, one in function.instructions()
            if one.opcode is Opcode.INVOKE_PACKED and isinstance(one.operands[0], int)
        )
        constants = [value.numpy().nbytes for value in program.constants]
        count, size = len(constants), sum(constants)
    elif isinstance(library.model, AOTModel):
        count, size = library.model.parameter_tensors, library.model.parameter_bytes
    return {
        "file": path,
        "kind": "package",
        "bytes": Path(path).stat().st_size,
        "format": content.kind,
        "executor": content.executor,
        "target": content.target,
        "machine": library.machine,
        "features": list(library.features),
        "name": content.name,
        "inputs": [one.as_json() for one in content.inputs],
        "outputs": [one.as_json() for one in content.outputs],
        "kernels": dict(kernels.most_common()),
        "parameters": {"tensors": count, "bytes": int(size)},
        # The virtual machine allocates as it runs: how much depends on the shapes.
        "workspace_bytes": None if content.executor == "vm" else content.workspace_bytes,
        "library": content.library_name,
        "library_bytes": len(content.library) or Path(path).stat().st_size,
    }


def _library(package: TVMCPackage) -> LibraryContent:
    if package.lib_path is not None:
        return read_library(Path(package.lib_path))
    path = Path(package.package_path)
    metadata = check_model_library(read_members(path), path)
    triple = str(metadata.get("triple", ""))
    return LibraryContent(
        (), tuple(metadata["features"]), package.content.target, triple.partition("-")[0], None
    )
