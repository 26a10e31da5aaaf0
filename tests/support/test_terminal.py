"""Programs printed on a terminal."""

from __future__ import annotations

import re

import pytest

import tilewright as tvm
from tilewright import relay, te, tir
from tilewright.support.errors import TilewrightError
from tilewright.support.terminal import coloured, cprint


def test_a_program_is_printed_as_it_reads(capsys: pytest.CaptureFixture[str]) -> None:
    """Modules, functions, schedules and their steps; without colours where the output is a file."""
    a = te.placeholder((4,), name="A")
    function = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1.0, name="B")])
    module = tvm.IRModule({"main": function})
    function.show()
    assert capsys.readouterr().out == f"{function.script()}\n"
    module.show(black_format=True)
    assert capsys.readouterr().out == f"{module.script()}\n"
    schedule = tir.Schedule(module)
    schedule.parallel(schedule.get_loops("B")[0])
    schedule.show()
    assert capsys.readouterr().out == f"{schedule.mod.script()}\n{schedule.trace}\n"
    x = relay.var("x", shape=(2,))
    graph = tvm.IRModule.from_expr(relay.Function([x], x))
    graph.show()
    assert capsys.readouterr().out == f"{graph}\n"


def test_colours_change_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """Without its colours the text is the same; an unknown style is refused."""
    text = 'def main():  # a comment\n    T.evaluate("text", 1)'
    assert "\033[35mdef\033[0m main" in coloured(text, "light")
    assert re.sub(r"\033\[\d+m", "", coloured(text, "dark")) == text
    cprint(text, "ansi")
    assert capsys.readouterr().out == f"{coloured(text, 'ansi')}\n"
    with pytest.raises(TilewrightError, match="the styles are light, dark, ansi, not 'loud'"):
        cprint(text, "loud")
