"""StableHLO modules from exported programs, files and functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilewright.relay.frontend.common import check_input_names
from tilewright.relay.frontend.jax.attributes import name_of
from tilewright.relay.frontend.jax.package import bindings, jax_package
from tilewright.support.errors import ModelError
from tilewright.support.wording import argument

BYTECODE: Final = b"ML\xefR"
"""How MLIR's bytecode begins."""


@dataclass(frozen=True)
class Program:
    """A module of JAX's MLIR bindings, and the names of the inputs of its function ``main``."""

    module: Any
    names: list[str]

    @property
    def block(self) -> Any:
        """The block of the function that runs."""
        return _function(self.module).regions[0].blocks[0]


def read_program(model: Any, args: Sequence[Any] = (), shapes: Mapping[str, Any] | None = None) -> Program:
    """A program, whose dimensions are all known if ``shapes`` gives those that the export left open."""
    if isinstance(model, (str, os.PathLike)):
        model = Path(model).read_bytes()
    if isinstance(model, (bytes, bytearray)):
        model = _deserialized(bytes(model))
    jax = jax_package()
    if isinstance(model, jax.export.Exported):
        return _of_export(model, shapes or {})
    if callable(model):
        # Arguments that the function does not use stay inputs: callers pass them.
        return _program(jax.jit(model, keep_unused=True).lower(*args).compiler_ir("stablehlo"))
    if hasattr(model, "body") and hasattr(model, "operation"):
        return _program(model)
    raise ModelError(
        f"a {type(model).__name__} is not a JAX program: give a jax.export.Exported, its serialized bytes, the path of "
        "a file with them, or a function with example arguments"
    )


def exported_function(function: Any, args: Sequence[Any]) -> Any:
    """The export of a function for example arguments."""
    jax = jax_package()
    return jax.export.export(jax.jit(function, keep_unused=True))(*args)


def _deserialized(content: bytes) -> Any:
    """An exported program, or a module of StableHLO's bytecode or text."""
    mlir = bindings()
    try:
        if content.startswith(BYTECODE):
            return mlir.stablehlo.deserialize_portable_artifact(mlir.new_context(), content)
        if content.lstrip()[:6] in (b"module", b"#loc =", b"func.f"):
            with mlir.new_context():
                return mlir.ir.Module.parse(content.decode())
        return jax_package().export.deserialize(bytearray(content))
    except Exception as error:
        raise ModelError(
            f"not a JAX program: neither jax.export nor StableHLO can read it ({error})"
        ) from error


def _of_export(exported: Any, shapes: Mapping[str, Any]) -> Program:
    mlir = bindings()
    with mlir.new_context():
        program = _program(mlir.ir.Module.parse(exported.mlir_module()))
    is_open = any(not isinstance(extent, int) for kind in exported.in_avals for extent in kind.shape)
    return _specialized(exported, program.names, shapes) if is_open else program


def _specialized(exported: Any, names: list[str], shapes: Mapping[str, Any]) -> Program:
    """A program whose dimensions were left open, for the shapes given; JAX itself works out all others."""
    jax, mlir = jax_package(), bindings()
    chosen = dict(zip(exported.module_kept_var_idx, names, strict=True))
    check_input_names(shapes, names, names)
    given = []
    for place, kind in enumerate(exported.in_avals):
        name = chosen.get(place, f"arg{place}")
        extents = shapes.get(name, kind.shape)
        if any(not isinstance(extent, int) for extent in extents):
            raise ModelError(
                f"the input {name!r} has the shape ({', '.join(map(str, kind.shape))}): fix it with "
                f"{argument('shape')}"
            )
        given.append(jax.ShapeDtypeStruct(tuple(extents), kind.dtype))
    args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, given)
    module = jax.jit(exported.call, keep_unused=True).lower(*args, **kwargs).compiler_ir("stablehlo")
    with module.context:
        refined = mlir.refine(module)
    return Program(refined, [chosen.get(place, f"arg{place}") for place in range(len(given))])


def _program(module: Any) -> Program:
    return Program(module, _input_names(module))


def _functions(module: Any) -> dict[str, Any]:
    return {
        one.attributes["sym_name"].value: one
        for one in module.body.operations
        if one.operation.name == "func.func"
    }


def _function(module: Any) -> Any:
    """The function that runs: ``main``, or the only one."""
    functions = _functions(module)
    if "main" not in functions and len(functions) != 1:
        raise ModelError("the program has no function main")
    return functions.get("main") or next(iter(functions.values()))


def _input_names(module: Any) -> list[str]:
    """The names of the inputs: those of the function's parameters, with the keys inside trees after dots."""
    arguments = list(_function(module).regions[0].blocks[0].arguments)
    # Where dimensions are open, names are at the function that main calls when it has checked the shapes.
    inner = _functions(module).get("_wrapped_jax_export_main")
    named = arguments if inner is None else list(inner.regions[0].blocks[0].arguments)[-len(arguments) :]
    taken: list[str] = []
    for place, argument_ in enumerate(named):
        name = name_of(argument_.location) or f"arg{place}"
        chosen, count = name, 0
        while chosen in taken:
            count += 1
            chosen = f"{name}_{count}"
        taken.append(chosen)
    return taken
