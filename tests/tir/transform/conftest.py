"""What the tests of passes share: running a pass on one function, and the interpreter as the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass
from tilewright.support.recursion import recursion_room
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret


def _apply(function: PrimFunc, *passes: Pass) -> PrimFunc:
    module = IRModule.from_expr(function)
    for each in passes:
        module = each(module)
    (made,) = module.functions.values()
    return made


def _agree(before: PrimFunc, after: PrimFunc, *arguments: Any) -> list[Any]:
    results = []
    for function in (before, after):
        given = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
        interpret(function, *given)
        results.append(given)
    for expected, actual in zip(*results, strict=True):
        np.testing.assert_array_equal(actual, expected)
    return results[0]


@pytest.fixture
def apply() -> Callable[..., PrimFunc]:
    """``apply(function, pass, ...)`` gives the function after the passes."""
    return _apply


@pytest.fixture
def agree() -> Callable[..., list[Any]]:
    """``agree(before, after, *arguments)`` runs both on copies of the arguments, wants equal arrays, gives them."""
    return _agree


@pytest.fixture
def nodes_of() -> Callable[[Any, type], list[Any]]:
    """``nodes_of(function_or_statement, class)`` lists the distinct nodes of a class, children first."""

    def collect(root: Any, kind: type) -> list[Any]:
        with recursion_room():
            return [found for found in post_order(root) if isinstance(found, kind)]

    return collect
