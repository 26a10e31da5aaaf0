"""Arithmetic on integers in place of arithmetic on the real numbers that they stand for.

``FakeQuantizationToInteger`` looks for expressions between ``qnn.dequantize`` and ``qnn.quantize`` and computes them on
the integers. Each operator that it may meet has a rule: from a call, whose arguments are integers now, and what every
expression stands for, to integers and what they stand for.

    @register_fake_quantization_to_integer("nn.batch_flatten")
    def batch_flatten(call, affine):
        return [call, affine[call.args[0]]]
"""

from tilewright.relay.qnn.integers import arithmetic, moving, pooling, products
from tilewright.relay.qnn.integers.affine import NotInteger, TensorAffineType, TupleAffineType
from tilewright.relay.qnn.integers.subgraph import integer_form

_ = (arithmetic, moving, pooling, products)  # they register rules

__all__ = ["NotInteger", "TensorAffineType", "TupleAffineType", "integer_form"]
