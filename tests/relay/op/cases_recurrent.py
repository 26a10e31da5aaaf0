"""Cases of recurrent layers; tests/relay/op/nn/test_recurrent.py has more sizes."""

from __future__ import annotations

from typing import Any

from tests.relay.op.cases import Case, Input

from tilewright import relay
from tilewright.topi.nn.recurrent import CELLS


def _layer(cell: str) -> Any:
    count = 2 + CELLS[cell].states
    return lambda *values: relay.nn.contrib_recurrent(
        values[0], values[1], values[2:count], values[count:], cell
    ).astuple()


CASES = [
    Case(
        f"recurrent_{cell}",
        _layer(cell),
        [
            Input((3, 2, kind.gates * 16)),
            Input((1, 5, kind.gates, 16), low=-0.3, high=0.3),
            *[Input((2, 5))] * kind.states,
            *[Input((16,))] * kind.biases,
        ],
        constants=(1,),
    )
    for cell, kind in CELLS.items()
]
