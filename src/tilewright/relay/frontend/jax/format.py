"""JAX as a format of models: ``from_jax``, and how its files begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tilewright.ir.module import IRModule
from tilewright.relay.expr import Var
from tilewright.relay.frontend.common import Unsupported, check_input_names, input_type, require_supported
from tilewright.relay.frontend.common.description import Described, Tensor
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.jax.attributes import dtype_of, shape_of
from tilewright.relay.frontend.jax.importer import GraphImporter, list_unsupported
from tilewright.relay.frontend.jax.node import operation_name
from tilewright.relay.frontend.jax.package import jax_package
from tilewright.relay.frontend.jax.reading import BYTECODE, Program, exported_function, read_program
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.runtime import ndarray
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room


def from_jax(
    model: Any,
    args: Sequence[Any] = (),
    *,
    params: Any = None,
    shape: Mapping[str, Any] | None = None,
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a JAX program: a ``jax.export.Exported``, its serialized bytes, the path of a
    file with them, or a function (jitted or not) with example arguments.

    ``args`` are the example arguments of a function: arrays, ``jax.ShapeDtypeStruct`` and trees of them. ``params`` is
    the value of the first argument where that is a tree of weights, which become parameters of the module; the function
    is then called with it before ``args``. ``shape`` gives by name the shapes of inputs whose dimensions the export
    left open. Inputs have the names of the function's parameters, with the keys inside trees after dots.

    Loops and branches that depend on data need the virtual machine. A program that cannot be converted raises one error
    that names all that is missing.
    """
    leaves = [] if params is None else jax_package().tree_util.tree_leaves(params)
    program = _readable(model, args if params is None else (params, *args), shape)
    block, names = program.block, program.names
    check_input_names(shape or {}, names, names)
    if len(leaves) > len(names):
        raise ModelError(f"params has {len(leaves)} arrays, the program {len(names)} inputs")
    graph = GraphImporter(program.module)
    values: list[Any] = []
    for name, argument, leaf in zip(
        names, block.arguments, [*leaves, *[None] * (len(names) - len(leaves))], strict=True
    ):
        kind = input_type(name, shape_of(argument.type), dtype_of(argument.type))
        values.append(Var(name, kind) if leaf is None else _weight(graph, name, leaf, argument.type))
    with recursion_room():
        outputs = graph.inside(block, values)
        inputs = values[len(leaves) :]
        labels = [f"output_{place}" for place in range(len(outputs))]
        return finished(graph.scope.module, inputs, outputs, labels, graph.scope.params)


def _readable(model: Any, args: Sequence[Any], shape: Mapping[str, Any] | None) -> Program:
    """A program all of whose operations can be converted."""
    program = read_program(model, args, shape)
    missing = list_unsupported(program.module)
    if callable(model) and any(one.operator.startswith("chlo.") for one in missing):
        # An export writes functions such as lgamma out, in operations that are supported.
        program = read_program(exported_function(model, args), (), shape)
        missing = list_unsupported(program.module)
    require_supported(missing)
    return program


def _weight(graph: GraphImporter, name: str, leaf: Any, kind: Any) -> Any:
    """A parameter that has the value of a leaf."""
    value = np.asarray(leaf)
    if value.shape != shape_of(kind) or str(value.dtype) != dtype_of(kind):
        raise ModelError(
            f"the parameter {name!r} is {value.dtype}{list(value.shape)}, the program wants {kind}: params has to be "
            "the value of its first argument"
        )
    array = ndarray.array(np.ascontiguousarray(value).reshape(value.shape))
    variable = Var(name, input_type(name, value.shape, dtype_of(kind)))
    graph.scope.params[name] = array
    graph.scope.param_values[variable] = array
    return variable


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a file; the options are those of ``relay.frontend.from_jax``."""
    return from_jax(path, shape=shape, **options)


def is_bytecode(head: bytes) -> bool:
    """True if a file begins as MLIR's bytecode does; what ``jax.export`` serializes begins with anything."""
    return head.startswith(BYTECODE)


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The operations of a program that cannot be converted."""
    return list_unsupported(read_program(path).module)


def describe(path: str) -> Described:
    """What a file says of itself."""
    program = read_program(path)
    block = program.block
    counts: dict[str, int] = {}
    for operation in block.operations:
        name = operation_name(operation.operation)
        counts[name] = counts.get(name, 0) + 1
    inputs = [
        Tensor(name, dtype_of(argument.type), shape_of(argument.type))
        for name, argument in zip(program.names, block.arguments, strict=True)
    ]
    results = list(list(block.operations)[-1].operation.operands)
    outputs = [
        Tensor(f"output_{place}", dtype_of(value.type), shape_of(value.type))
        for place, value in enumerate(results)
    ]
    return Described("jax", "JAX", {}, counts, {}, inputs, outputs)


FRONTEND: Final = Frontend("jax", ("jax", "mlir", "mlirbc"), load, is_bytecode, unsupported_in, describe)
