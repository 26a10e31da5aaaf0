"""Passes tested by the text of programs before and after."""

import textwrap
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.infer import infer_module
from tilewright.relay.parser import parse_module

TYPE = "Tensor[(4), float32]"


def module(text: str) -> IRModule:
    """A module from text; "$T" stands for the type of four float32."""
    return parse_module('#[version = "0.0.5"]\n' + textwrap.dedent(text).replace("$T", TYPE))


def check(before: str, rewrite: Any, after: str) -> IRModule:
    """The pass makes the second program of the first; gives what it made."""
    made = rewrite(module(before))
    assert_structural_equal(infer_module(made), infer_module(module(after)))
    return made  # type: ignore[no-any-return]


def unchanged(program: str, rewrite: Any) -> None:
    """The pass leaves the program as it is."""
    check(program, rewrite, program)
