"""The names of dimensions stay with a model from its import to its compiled program."""

import onnx

import tilewright as tvm
from tilewright import relay
from tilewright.relay.dimension_names import all_dimension_names, with_dimension_names

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[batch, seq, 4] x, float[4, 3] w) => (float[batch, seq, 3] y, float[batch, seq] s) {
    y = MatMul(x, w)
    s = ReduceSum <keepdims = 0> (x, axes)
}
"""


def test_they_come_from_the_model():
    """By tensor, with nothing for dimensions of known size; tensors without names are left out."""
    model = MODEL.replace("    s =", "    axes = Constant <value = int64[1] {2}>()\n    s =")
    module, _ = relay.frontend.from_onnx(onnx.parser.parse_model(model))
    names = {"x": ("batch", "seq", ""), "y": ("batch", "seq", ""), "s": ("batch", "seq")}
    assert all_dimension_names(module["main"]) == names
    again = tvm.parser.fromtext(module.astext())
    assert all_dimension_names(again["main"]) == names
    assert relay.vm.compile(module, "llvm").program.dimension_names == names


def test_a_function_without_names():
    """Nothing is added to it."""
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], x)
    assert with_dimension_names(function, {"x": [""]}) is function
    assert all_dimension_names(function) == {}
