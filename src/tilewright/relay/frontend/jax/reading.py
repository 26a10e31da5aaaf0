"""StableHLO modules from exported programs, files and functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.relay.frontend.jax.attributes import name_of
from tilewright.relay.frontend.jax.package import bindings, jax_package
from tilewright.support.errors import ModelError

BYTECODE: Final = b"ML\xefR"
"""How MLIR's bytecode begins."""


def read_module(model: Any, args: Sequence[Any] = (), shapes: Mapping[str, Any] | None = None) -> Any:
    """A module of JAX's MLIR bindings, whose dimensions are all known if ``shapes`` gives those that the export left
    open."""
    if isinstance(model, (str, os.PathLike)):
        model = Path(model).read_bytes()
    if isinstance(model, (bytes, bytearray)):
        model = _deserialized(bytes(model))
    jax = jax_package()
    if isinstance(model, jax.export.Exported):
        return _of_export(model, shapes or {})
    if callable(model):
        # Arguments that the function does not use stay inputs: callers pass them.
        return jax.jit(model, keep_unused=True).lower(*args).compiler_ir("stablehlo")
    if hasattr(model, "body") and hasattr(model, "operation"):
        return model
    raise ModelError(
        f"a {type(model).__name__} is not a JAX program: give a jax.export.Exported, its serialized bytes, the path of "
        "a file with them, or a function with example arguments"
    )


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
        if isinstance(error, (KeyboardInterrupt, MemoryError)):
            raise
        raise ModelError(
            f"not a JAX program: neither jax.export nor StableHLO can read it ({error})"
        ) from error


def _of_export(exported: Any, shapes: Mapping[str, Any]) -> Any:
    mlir = bindings()
    if any(not isinstance(extent, int) for kind in exported.in_avals for extent in kind.shape):
        return _specialized(exported, shapes)
    with mlir.new_context():
        return mlir.ir.Module.parse(exported.mlir_module())


def _specialized(exported: Any, shapes: Mapping[str, Any]) -> Any:
    """A program whose dimensions were left open, for the shapes given; JAX itself works out all others."""
    jax, mlir = jax_package(), bindings()
    with mlir.new_context():
        names = input_names(mlir.ir.Module.parse(exported.mlir_module()))
    names = names[-len(exported.in_avals) :]
    given = []
    for name, kind in zip(names, exported.in_avals, strict=True):
        extents = shapes.get(name, kind.shape)
        if any(not isinstance(extent, int) for extent in extents):
            raise ModelError(
                f"the input {name!r} has the shape {kind.shape}: fix it with shape={{{name!r}: ...}}"
            )
        given.append(jax.ShapeDtypeStruct(tuple(extents), kind.dtype))
    args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, given)
    module = jax.jit(exported.call, keep_unused=True).lower(*args, **kwargs).compiler_ir("stablehlo")
    with module.context:
        return mlir.refine(module)


def main_block(module: Any) -> Any:
    """The block of the function that runs: ``main``, or the only public one."""
    functions = [one for one in module.body.operations if one.operation.name == "func.func"]
    for function in functions:
        if function.attributes["sym_name"].value == "main":
            return function.regions[0].blocks[0]
    if len(functions) == 1:
        return functions[0].regions[0].blocks[0]
    raise ModelError("the program has no function main")


def input_names(module: Any) -> list[str]:
    """The names of the inputs: those of the function's parameters, with the keys inside trees after dots."""
    taken: list[str] = []
    for place, argument in enumerate(main_block(module).arguments):
        name = name_of(argument.location) or f"arg{place}"
        chosen, count = name, 0
        while chosen in taken:
            count += 1
            chosen = f"{name}_{count}"
        taken.append(chosen)
    return taken
