"""JAX programs against JAX itself; skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import relay
from tilewright.driver import tvmc
from tilewright.relay.frontend import registry
from tilewright.relay.frontend.common import UnsupportedOperators
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import ModelError

jax = pytest.importorskip("jax")

import jax.export  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from tests.relay.frontend.jax.programs import CASES, floats  # noqa: E402

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def run(module: Any, params: Any, *inputs: Any) -> list[Any]:
    """What the reference interpreter computes."""
    given = iter(inputs)
    values = [
        params[one.name_hint].numpy() if one.name_hint in params else np.asarray(next(given))
        for one in module["main"].params
    ]
    made = Interpreter(module).run(module["main"], values)
    return list(made) if isinstance(made, (list, tuple)) else [made]


def same(found: list[Any], expected: Any) -> None:
    """The results are those of JAX, in type, shape and value."""
    leaves = [np.asarray(one) for one in jax.tree_util.tree_leaves(expected)]
    assert len(found) == len(leaves)
    for place, (one, other) in enumerate(zip(found, leaves, strict=True)):
        one = np.asarray(one)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), f"result {place}"
        np.testing.assert_allclose(one, other, **TOLERANCE, err_msg=f"result {place}")


@pytest.mark.parametrize("name", list(CASES))
def test_operations(name: str) -> None:
    """Each family, from the function and from its serialized export, which decomposes more."""
    function, arguments = CASES[name]
    expected = jax.jit(function)(*arguments)
    same(run(*relay.frontend.from_jax(function, arguments), *arguments), expected)
    exported = jax.export.export(jax.jit(function))(*arguments)
    same(run(*relay.frontend.from_jax(bytes(exported.serialize())), *arguments), expected)
