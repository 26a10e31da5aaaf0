"""Cases of attention; tests/relay/op/nn/test_attention.py has more sizes."""

from __future__ import annotations

from tests.relay.op.cases import Case, Input

from tilewright import relay

CASES = [
    Case(
        "attention",
        lambda q, k, v: relay.nn.contrib_attention(q, k, v, heads=2, scale=0.5),
        [Input((1, 9, 2, 4)), Input((1, 5, 2, 4)), Input((1, 5, 2, 3))],
        dynamic=False,
    ),
    Case(
        "attention_masked",
        lambda q, k, v, mask: relay.nn.contrib_attention(
            q, k, v, mask, 2, 0.5, ("NHTC", "NHCT", "NTHC", "NHTC"), (0, 1, 0)
        ),
        [Input((2, 2, 3, 4)), Input((2, 3, 4, 5)), Input((2, 5, 2, 3)), Input((2, 1, 5, 3))],
        dynamic=False,
    ),
]
