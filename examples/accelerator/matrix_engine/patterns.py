"""What the engine takes: a product, a bias if there is one, the requantisation, and an activation if there is one."""

from __future__ import annotations

from tilewright.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard


def _chain(product: str) -> DFPattern:
    made = is_op(product)(
        wildcard(), is_constant(), is_constant(), is_constant(), is_constant(), is_constant()
    )
    made = made.optional(
        lambda root: is_op("nn.bias_add")(root, is_constant()) | is_op("add")(root, is_constant())
    )
    made = is_op("qnn.requantize")(made, is_constant(), is_constant(), is_constant(), is_constant())
    return made.optional(lambda root: is_op("clip")(root) | is_op("nn.relu")(root))


CONV2D = _chain("qnn.conv2d")
DENSE = _chain("qnn.dense")
