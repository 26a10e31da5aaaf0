"""Small names of TVM's that programs use now and then: each does what it is for."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te, tir, topi
from tilewright._ffi.registry import extract_ext_funcs, register_extension
from tilewright._ffi.runtime_ctypes import ObjectRValueRef
from tilewright.relay.frontend.change_datatype import ChangeDatatype
from tilewright.relay.interpreter import Interpreter
from tilewright.support import FrontendTestModule
from tilewright.tir.expr import IntImmEnum, div_ambiguity_error
from tilewright.topi.image import resize

LLVM = tvm.target.Target("llvm")


def test_the_error_of_an_ambiguous_division() -> None:
    """It names the divisions that are not."""
    with pytest.raises(RuntimeError, match="floordiv/floormod"):
        raise div_ambiguity_error()


def test_a_member_of_an_enumeration_becomes_an_integer() -> None:
    """Where an expression is made of it."""

    class Kind(IntEnum):
        SECOND = 2

    made = IntImmEnum(Kind.SECOND)
    assert made.value == 2 and tvm.ir.structural_equal(made.asobject(), tir.IntImm("int32", 2))


def test_extensions_of_the_interface() -> None:
    """A class with a code of its own; the functions that a library declares; an object given away."""

    class Handle:
        _tvm_tcode = 17

    assert register_extension(Handle, lambda address: Handle()) is Handle
    with pytest.raises(ValueError, match="a code of its own from 15 on"):
        register_extension(type("Small", (), {"_tvm_tcode": 4}), lambda address: None)

    def declare_all(declare: Any) -> int:
        declare("double", lambda x: 2 * x)
        return 0

    assert extract_ext_funcs(declare_all)["double"](4) == 8
    with pytest.raises(RuntimeError, match="cannot initialize"):
        extract_ext_funcs(lambda declare: 1)
    array = tvm.nd.empty((2,))
    assert ObjectRValueRef(array).obj is array


def test_a_module_of_python_functions() -> None:
    """Its functions are found by name, the entry too."""
    module = FrontendTestModule("run")
    module.add_function("run", lambda x: x + 1)
    module["twice"] = lambda x: 2 * x
    assert module.entry_name == "run" and module(3) == 4
    assert module["twice"](3) == 6 and module.get_function("run")(1) == 2
    with pytest.raises(AttributeError, match="no function 'other'; it has run, twice"):
        module["other"]


def test_another_element_type() -> None:
    """Parameters and constants change; what is computed follows, and so does the declared type."""
    x = relay.var("x", shape=(3,), dtype="float32")
    i = relay.var("i", shape=(3,), dtype="int32")
    body = relay.take(x + relay.const(np.float32([1, 2, 3])), i)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, i], body)))
    change = ChangeDatatype("float32", "float16")
    made = change.transform_function(module["main"], module, None)
    assert [str(one.checked_type.dtype) for one in made.params] == ["float16", "int32"]
    assert made.ret_type.dtype == "float16"
    found = Interpreter().run(made, [np.float16([1, 1, 1]), np.int32([2, 0, 1])])
    np.testing.assert_array_equal(found, np.float16([4, 2, 3]))
    constant = change.visit_constant(relay.const(np.int32([1])))
    assert constant.data.dtype == "int32"
    assert change.visit_function(module["main"]).params[0].checked_type.dtype == "float16"


def test_constants_of_a_registered_element_type() -> None:
    """They are casts: the type's numbers exist only where the program runs."""
    tvm.target.datatype.register("halved", 151)
    made = ChangeDatatype("float32", "custom[halved]16").visit_constant(relay.const(np.float32([1])))
    assert made.op.name == "cast" and str(made.attrs.dtype) == "custom[halved]16"


def value(expr: Any) -> float:
    """What an expression of constants is."""
    out = te.compute((1,), lambda _: expr)
    module = tvm.build(te.create_schedule(out.op), [out], "llvm")
    array = tvm.nd.empty((1,), out.dtype)
    module(array)
    return float(array.numpy()[0])


def test_places_in_images() -> None:
    """Where pixels lie, which one is nearest, and the indices of layouts."""
    assert resize.get_1d_indices([1, 2, 3]) == (1, 2, 3, 0, 0)
    assert resize.get_2d_indices([1, 4, 5, 2], "NHWC") == (1, 2, 4, 5, 0, 0)
    assert resize.get_2d_indices([1, 2, 4, 5, 3], "NCHW4c") == (1, 2, 4, 5, 3, 0)
    assert resize.get_3d_indices([1, 2, 3, 4, 5]) == (1, 2, 3, 4, 5, 0)
    with pytest.raises(tvm.error.OpAttributeInvalid, match="not one of 2 axes"):
        resize.get_1d_indices([1, 2])
    assert value(resize.get_inx(3, 4, 8, "half_pixel")) == 1.25
    assert value(resize.get_inx(3, 4, 8, "asymmetric")) == 1.5
    half = tir.const(1.5, "float32")
    found = [
        value(resize.get_closest_index(half, method, None)) for method in ("", "ceil", "round_prefer_floor")
    ]
    assert found == [1, 2, 1]
    with pytest.raises(tvm.error.OpAttributeInvalid, match="rounding method"):
        resize.get_closest_index(half, "up", None)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pixels_beyond_the_border(axes: int) -> None:
    """Are the nearest ones."""
    shape = (1, 2, *(3,) * axes)
    data = te.placeholder(shape, name="data")
    letters = {1: "W", 2: "HW", 3: "DHW"}[axes]
    read = getattr(resize, f"get_{axes}d_pixel")
    inner = [0, 0, 0][: 3 if axes < 3 else 1]
    out = te.compute(
        (1,),
        lambda _: read(data, f"NC{letters}", *[3] * axes, 0, 1, *[tir.const(7)] * axes, *inner),
        name="out",
    )
    module = tvm.build(te.create_schedule(out.op), [data, out], "llvm")
    image = np.random.default_rng(0).random(shape, "float32")
    array = tvm.nd.empty((1,))
    module(tvm.nd.array(image), array)
    assert array.numpy()[0] == image.reshape(-1)[-1]


def test_maps_and_attributes() -> None:
    """Keys and values of what public functions return."""
    made = tvm.runtime.convert({"a": 1, "b": 2})
    assert sorted(made.keys()) == ["a", "b"] and sorted(int(one) for one in made.values()) == [1, 2]
    attrs = tvm.ir.make_node("DictAttrs", size=3)
    assert int(attrs["size"]) == 3


def test_remainders() -> None:
    """The sign is the dividend's."""
    assert value(tir.fmod(tir.const(-7.5, "float32"), tir.const(2.0, "float32"))) == np.fmod(-7.5, 2)


def test_targets_of_microcontrollers() -> None:
    """By their names."""
    assert "cortex-m7" in str(tvm.target.target.micro("stm32f746xx"))


def test_shape_functions_and_strategies() -> None:
    """The names of parameters are TVM's."""
    shape = te.placeholder((2,), "int64", "shape")
    (same,) = relay.op.tensor.copy_shape_func(None, [shape], None)
    assert same.dtype == "int64"
    data, at = te.placeholder((4,), name="data"), te.placeholder((2,), "int64", "at")
    updates, rows = te.placeholder((2,), name="updates"), te.placeholder((2, 2), "int64", "rows")
    kind = relay.TensorType((4,), "float32")
    for name, inputs in (
        ("scatter", [data, at, updates]),
        ("scatter_add", [data, at, updates]),
        ("sparse_reshape", [rows, at, at]),
        ("sparse_fill_empty_rows", [rows, updates, at, updates]),
    ):
        strategy = getattr(relay.op.strategy.generic, f"{name}_strategy")
        attrs = tvm.ir.make_node("DictAttrs", axis=0)
        (found,) = strategy(attrs=attrs, outs=inputs, out_type=kind, target=LLVM).specializations
        assert name in found.implementations[0].name
    assert topi.utils.get_const_tuple(data.shape) == (4,)


def test_fused_functions() -> None:
    """``relay.analysis.analysis`` has what ``relay.analysis`` has."""
    x = relay.var("x", shape=(2,))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.exp(relay.tanh(x))))
    found = relay.analysis.analysis.extract_fused_functions(relay.transform.InferType()(module))
    assert len(found) == 1


def test_short_names_of_devices() -> None:
    """OpenCL's and Metal's."""
    assert tvm.cl(1) == tvm.opencl(1) and tvm.nd.mtl(0) == tvm.metal(0)


def run(outputs: Any, tensors: list[Any], *values: Any) -> list[np.ndarray]:
    """What tensors compute for the values of others."""
    listed = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    function = tvm.build(te.create_schedule([one.op for one in listed]), [*tensors, *listed], "llvm")
    results = [tvm.nd.empty(topi.utils.get_const_tuple(one.shape), one.dtype) for one in listed]
    function(*[tvm.nd.array(value) for value in values], *results)
    return [result.numpy() for result in results]


def test_kernels_of_detection() -> None:
    """Boxes above a threshold, suppressed by better ones, and moved to the front."""
    kernels = tvm.topi.vision.nms
    one, zero = tir.const(1, "float32"), tir.const(0, "float32")
    boxes = np.float32(
        [[[0, 0.9, 0, 0, 2, 2], [0, 0.1, 0, 0, 1, 1], [0, 0.8, 0, 0, 2, 2.1], [1, 0.7, 3, 3, 4, 4]]]
    )
    data = te.placeholder(boxes.shape, name="data")
    valid = kernels.hybrid_get_valid_counts(
        data, tir.const(0.5, "float32"), tir.const(0), tir.const(1), one, 1, 4
    )
    counts, kept, places = run(valid, [data], boxes)
    assert counts.tolist() == [3] and places.tolist() == [[0, 2, 3, -1]]
    order = te.placeholder((1, 4), "int32", "order")
    count = te.placeholder((1,), "int32", "count")
    index = te.placeholder((1, 4), "int32", "index")
    numbers = [tir.const(False), tir.const(-1), tir.const(2), tir.const(1), tir.const(0), tir.const(True)]
    threshold = tir.const(0.5, "float32")
    result = kernels.hybrid_nms(
        data, order, count, index, 1, 4, tir.const(-1), threshold, *numbers, zero, one
    )
    ranks = np.int32([[0, 1, 2, 3]])
    suppressed, left = run(result, [data, order, count, index], kept, ranks, counts, places)
    assert left.tolist() == [[0, -1, 3, -1]] and suppressed[0, 1, 1] == -1
    moved = kernels.hybrid_rearrange_box_out(data, one, 1, 4)
    np.testing.assert_allclose(run(moved, [data], suppressed)[0][0, :, 1], [0.9, 0.7, -1, -1])
    compacted, total = run(kernels.hybrid_rearrange_indices_out(index, one, 1, 4), [index], left)
    assert compacted.tolist() == [[0, 3, -1, -1]] and total.tolist() == [[2]]


def test_kernels_of_single_shot_detectors() -> None:
    """The same as the operators that they are the kernels of."""
    multibox = tvm.topi.vision.ssd.multibox
    features = te.placeholder((1, 1, 2, 2), name="features")
    (anchors,) = run(
        multibox.hybrid_multibox_prior(features, (0.5,), (1.0,), (-1, -1), (0.5, 0.5)),
        [features],
        np.zeros((1, 1, 2, 2), "float32"),
    )
    np.testing.assert_allclose(anchors[0, 0], [0, 0, 0.5, 0.5], atol=1e-6)
    scores, moves = te.placeholder((1, 2, 4), name="scores"), te.placeholder((1, 16), name="moves")
    anchor = te.placeholder((1, 4, 4), name="anchor")
    found = multibox.hybrid_multibox_transform_loc(
        scores, moves, anchor, tir.const(True), tir.const(0.5, "float32"), (0.1, 0.1, 0.2, 0.2)
    )
    given = np.float32([[[0.9, 0.1, 0.8, 0.7], [0.1, 0.9, 0.2, 0.3]]])
    decoded, counts = run(found, [scores, moves, anchor], given, np.zeros((1, 16), "float32"), anchors)
    assert counts.tolist() == [1]
    np.testing.assert_allclose(decoded[0, 0], [0, 0.9, *anchors[0, 1]], rtol=1e-5, atol=1e-6)
