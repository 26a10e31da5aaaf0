"""JAX itself and its MLIR bindings, which are imported when a model is read and not before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tilewright.support.errors import ModelError


def jax_package() -> Any:
    """``jax``, with ``jax.export`` loaded."""
    try:
        import jax
        import jax.export
    except ImportError as missing:
        raise ModelError("reading JAX models needs the jax package: pip install tilewright[jax]") from missing
    return jax


def bindings() -> Any:
    """JAX's bindings of MLIR: ``ir``, ``stablehlo``, and what makes contexts and fixes dynamic shapes."""
    jax_package()
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    return SimpleNamespace(
        ir=ir,
        stablehlo=stablehlo,
        new_context=mlir.make_ir_context,
        refine=mlir.refine_polymorphic_shapes,
    )
