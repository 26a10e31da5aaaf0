"""Cases of the operators that give their argument, with a hint to the compiler."""

from __future__ import annotations

import numpy as np
from tests.relay.op.cases import Case, Input

import tilewright as tvm
from tilewright import relay
from tilewright.relay.quantize.configuration import QAnnotateKind
from tilewright.relay.quantize.simulated import simulated_quantize

DATA = [Input((2, 3))]


def in_quarters(x: relay.Expr) -> relay.Expr:
    """Rounded to quarters, between minus one half and three quarters."""
    scale, least, most = (relay.const(value, "float32") for value in (0.25, -2.0, 3.0))
    return simulated_quantize(x, scale, least, most, kind=QAnnotateKind.INPUT)


CASES = [
    Case("on_device", lambda x: relay.annotation.on_device(x, tvm.cpu()), DATA, np.copy, gradient=True),
    Case("on_device_fixed", lambda x: relay.annotation.on_device(x, "cpu", is_fixed=True), DATA, np.copy),
    Case("stop_fusion", relay.annotation.stop_fusion, DATA, np.copy, gradient=True),
    Case("stop_fusion_between", lambda x: relay.annotation.stop_fusion(x + x) + x, DATA, lambda x: 3 * x),
    Case("checkpoint", lambda x: relay.annotation.checkpoint(relay.exp(x)), DATA, np.exp),
    Case("cast_hint", lambda x: relay.annotation.cast_hint(x, "int8"), DATA, np.copy),
    Case(
        "simulated_quantize",
        in_quarters,
        [Input((4, 5))],
        lambda x: (np.clip(np.sign(x) * np.floor(np.abs(4 * x) + 0.5), -2, 3) / 4).astype("float32"),
    ),
    Case("bitpack_start", relay.annotation.bitpack_start, DATA, np.copy),
    Case("bitpack_end", relay.annotation.bitpack_end, DATA, np.copy),
    Case("device_copy", lambda x: relay.device_copy(x, tvm.cpu(), tvm.cpu()), DATA, np.copy, gradient=True),
]
