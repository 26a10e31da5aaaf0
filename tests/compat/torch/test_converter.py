"""The methods of TVM's ``PyTorchOpConverter`` compute what PyTorch's operators do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import TupleWrapper
from tilewright.relay.frontend.pytorch import (
    PyTorchOpConverter,
    convert_params,
    get_attr_chains,
    get_use_chains,
)
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.prelude import Prelude
from tilewright.support.errors import OpNotImplemented

torch = pytest.importorskip("torch")
F = torch.nn.functional
_GENERATOR = np.random.default_rng(5)


def real(*shape: int) -> np.ndarray:
    return _GENERATOR.uniform(-1, 1, shape).astype("float32")


@pytest.fixture(scope="module")
def converter() -> PyTorchOpConverter:
    """One converter; conversions do not depend on each other."""
    return PyTorchOpConverter(Prelude(tvm.IRModule()), "float32")


ROW, OTHER, IMAGE = real(3, 4), real(3, 4), real(1, 2, 6, 6)
INDEX = np.asarray([[1, 0], [2, 3], [0, 0]])
FLAGS, MORE = ROW > 0, OTHER > 0
BYTES = np.asarray([5, 3, 250], "uint8")
SORTED = np.asarray([1, 3, 5, 7], "float32")

Case = tuple[str, list[Any], Callable[..., Any] | None]

CASES: list[Case] = [
    *(
        (name, [ROW], None)
        for name in (
            "relu",
            "log_sigmoid",
            "hard_sigmoid",
            "hard_swish",
            "selu",
            "silu",
            "sigmoid",
            "reciprocal",
            "clone",
            "zeros_like",
            "ones_like",
            "logical_not",
            "is_floating_point",
            "numel",
        )
    ),
    ("log1p", [np.abs(ROW)], None),
    ("gelu", [ROW], None),
    ("celu", [ROW, 0.7], None),
    ("elu", [ROW, 0.7], None),
    ("leaky_relu", [ROW, 0.1], None),
    ("prelu", [IMAGE, real(2)], None),
    ("hardtanh", [ROW, -0.5, 0.5], None),
    ("softplus", [ROW, 2, 20], None),
    ("threshold", [ROW, 0.1, 7.0], None),
    ("clamp", [ROW, -0.2, 0.3], None),
    ("softmax", [ROW, 1, None], lambda x, axis, dtype: torch.softmax(x, axis)),
    ("log_softmax", [ROW, 1, None], lambda x, axis, dtype: torch.log_softmax(x, axis)),
    ("max", [ROW], None),
    ("min", [ROW, OTHER], None),
    ("max", [ROW, 1, True], lambda x, axis, keep: tuple(torch.max(x, axis, keep))),
    ("arange", [1, 9, 2, 4, None, None, False], lambda *given: torch.arange(1, 9, 2)),
    ("linspace", [0, 1, 5, 6, None, None, False], lambda *given: torch.linspace(0, 1, 5)),
    ("squeeze", [real(3, 1), 1], None),
    ("unsqueeze", [ROW, 0], None),
    ("concatenate", [[ROW, OTHER], 1], torch.cat),
    ("stack", [[ROW, OTHER], 0], None),
    ("slice", [ROW, 1, 1, 3, 1], lambda x, *given: x[:, 1:3]),
    ("narrow", [ROW, 1, 1, 2], None),
    ("select", [ROW, 1, 2], None),
    ("split", [ROW, 2, 1], None),
    ("split_with_sizes", [ROW, [1, 3], 1], None),
    ("chunk", [ROW, 2, 1], None),
    ("unbind", [ROW, 0], None),
    ("take", [ROW, np.asarray([0, 5, 11])], None),
    ("topk", [ROW, 2, 1, True, True], lambda *given: tuple(torch.topk(*given))),
    ("sort", [ROW, 1, True], lambda x, axis, down: tuple(torch.sort(x, axis, down))),
    ("argsort", [ROW, 1, False], None),
    ("repeat", [ROW, [2, 1]], lambda x, times: x.repeat(*times)),
    ("repeat_interleave", [ROW, 2, 0], torch.repeat_interleave),
    (
        "addcdiv",
        [ROW, OTHER, np.abs(ROW) + 1, 0.5],
        lambda x, a, b, value: torch.addcdiv(x, a, b, value=value),
    ),
    ("addcmul", [ROW, OTHER, ROW, 0.5], lambda x, a, b, value: torch.addcmul(x, a, b, value=value)),
    (
        "addmm",
        [real(3, 2), ROW, real(4, 2), 1, 2],
        lambda c, a, b, beta, alpha: torch.addmm(c, a, b, beta=beta, alpha=alpha),
    ),
    ("where", [FLAGS, ROW, OTHER], None),
    ("ones", [[2, 3], 6, None, None, False], lambda *given: torch.ones(2, 3)),
    ("zeros", [[2, 3], 6, None, None, False], lambda *given: torch.zeros(2, 3)),
    ("full", [[2, 3], 7.0, 6, None, None, False], lambda *given: torch.full((2, 3), 7.0)),
    ("full_like", [ROW, 7.0, None, None, None, False, None], lambda x, *given: torch.full_like(x, 7.0)),
    ("scalar_tensor", [2.5, 6, None, None, False], lambda *given: torch.scalar_tensor(2.5)),
    ("maxpool_1d", [real(1, 2, 8), [2], [2], [0], [1], False], F.max_pool1d),
    ("maxpool_2d", [IMAGE, [2, 2], [2, 2], [0, 0], [1, 1], False], F.max_pool2d),
    (
        "maxpool_2d_with_indices",
        [IMAGE, [2, 2], [2, 2], [0, 0], [1, 1], False],
        lambda x, *given: F.max_pool2d(x, 2, return_indices=True),
    ),
    ("maxpool_3d", [real(1, 1, 4, 4, 4), [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False], F.max_pool3d),
    (
        "convolution",
        [
            IMAGE,
            real(3, 2, 3, 3),
            real(3),
            [1, 1],
            [1, 1],
            [1, 1],
            False,
            [0, 0],
            1,
            False,
            False,
            True,
            True,
        ],
        lambda x, w, b, *given: F.conv2d(x, w, b, padding=1),
    ),
    (
        "batch_norm",
        [IMAGE, real(2), real(2), real(2), np.abs(real(2)) + 1, False, 0.1, 1e-5, True],
        lambda x, w, b, m, v, *given: F.batch_norm(x, m, v, w, b),
    ),
    (
        "instance_norm",
        [IMAGE, real(2), real(2), None, None, True, 0.1, 1e-5, True],
        lambda x, w, b, *given: F.instance_norm(x, weight=w, bias=b),
    ),
    (
        "layer_norm",
        [ROW, [4], real(4), real(4), 1e-5, True],
        lambda x, shape, w, b, *given: F.layer_norm(x, shape, w, b),
    ),
    (
        "group_norm",
        [real(1, 4, 3, 3), 2, real(4), real(4), 1e-5, True],
        lambda x, groups, w, b, *given: F.group_norm(x, groups, w, b),
    ),
    ("transpose", [ROW, 0, 1], None),
    ("flatten", [IMAGE, 1, -1], None),
    ("contiguous", [ROW, 0], lambda x, memory: x),
    ("dropout", [ROW, 0.5, False], lambda x, *given: x),
    ("view", [ROW, [2, -1]], lambda x, shape: x.view(shape)),
    ("reshape", [ROW, [4, 3]], None),
    ("pixel_shuffle", [real(1, 8, 2, 2), 2], None),
    ("linear", [ROW, real(2, 4), real(2)], F.linear),
    ("matmul", [ROW, real(4, 2)], None),
    ("norm", [ROW, 2], lambda x, p: torch.norm(x, p)),
    ("frobenius_norm", [ROW, [1], False], lambda x, dim, keep: torch.linalg.norm(x, dim=1)),
    ("std", [ROW, [1], True, False], lambda x, *given: torch.std(x, 1)),
    ("variance", [ROW, [1], True, False], lambda x, *given: torch.var(x, 1)),
    ("mean", [ROW, [1], True, None], lambda x, dim, keep, dtype: torch.mean(x, dim, keep)),
    ("logsumexp", [ROW, [1], False], None),
    ("cumsum", [ROW, 1, None], lambda x, axis, dtype: torch.cumsum(x, axis)),
    ("expand", [real(1, 4), [3, 4], False], lambda x, shape, implicit: x.expand(shape)),
    ("expand_as", [real(1, 4), ROW], lambda x, other: x.expand_as(other)),
    ("to", [ROW, 3, False, False], lambda x, *given: x.to(torch.int32)),
    ("type_as", [ROW, BYTES.astype("float64")], lambda x, other: x.type_as(other)),
    ("bitwise_not", [BYTES], None),
    ("bitwise_xor", [BYTES, BYTES[::-1].copy()], None),
    ("logical_and", [FLAGS, MORE], None),
    ("logical_xor", [FLAGS, MORE], None),
    ("add", [ROW, OTHER, 2], lambda x, y, alpha: torch.add(x, y, alpha=alpha)),
    ("rsub", [ROW, OTHER, 2], lambda x, y, alpha: torch.rsub(x, y, alpha=alpha)),
    ("embedding", [ROW, INDEX % 3, -1, False, False], lambda w, at, *given: F.embedding(at, w)),
    ("one_hot", [INDEX, 4], F.one_hot),
    ("gather", [ROW, 1, INDEX, False], lambda x, axis, at, sparse: torch.gather(x, axis, at)),
    ("index", [ROW, [np.asarray([2, 0])]], lambda x, at: x[at[0]]),
    (
        "index_put",
        [ROW, [np.asarray([2, 0])], real(2, 4), False],
        lambda x, at, values, add: torch.index_put(x, at, values),
    ),
    ("meshgrid", [[SORTED, SORTED]], lambda both: torch.meshgrid(*both, indexing="ij")),
    ("shape_as_tensor", [ROW], torch._shape_as_tensor),
    ("nonzero", [FLAGS], None),
    ("nonzero_numpy", [FLAGS], lambda x: torch.nonzero(x, as_tuple=True)),
    ("scatter", [ROW, 1, INDEX, real(3, 2)], None),
    ("scatter_add", [ROW, 1, INDEX, real(3, 2)], None),
    ("bincount", [np.asarray([0, 2, 2]), None, 0], lambda x, *given: torch.bincount(x)),
    ("masked_fill", [ROW, FLAGS, 9.0], None),
    ("masked_select", [ROW, FLAGS], None),
    (
        "unique",
        [np.asarray([2, 1, 1, 3]), True, True, True],
        lambda x, *given: torch.unique(x, True, True, True),
    ),
    (
        "nll_loss",
        [ROW, np.asarray([0, 3, 1]), None, 1, -100],
        lambda x, target, *given: F.nll_loss(x, target),
    ),
    ("flip", [ROW, [1]], None),
    ("roll", [ROW, [1], [1]], None),
    (
        "searchsorted",
        [SORTED, ROW * 8, False, True, None, None],
        lambda s, v, *given: torch.searchsorted(s, v, right=True),
    ),
    ("bucketize", [ROW * 8, SORTED, False, True], lambda v, s, *given: torch.bucketize(v, s, right=True)),
    (
        "interpolate",
        [IMAGE, [3, 3], None, "nearest", None, None],
        lambda x, size, *given: F.interpolate(x, size),
    ),
    ("size", [ROW], lambda x: list(x.shape)),
    ("size", [ROW, 1], lambda x, axis: x.size(axis)),
    ("numtotensor", [2.5], torch.tensor),
    ("tensortonum", [np.asarray([3.5], "float32")], lambda x: x.reshape(())),
    ("int", [3.7], int),
    ("Bool", [1], bool),
    ("Float", [3], float),
    ("identity", [ROW], lambda x: x),
    ("none", [], lambda: None),
    ("list_getitem", [[1, 2, 3], 1], lambda items, place: items[place]),
    ("list_len", [[1, 2, 3]], len),
]
"""A method, its inputs, and what PyTorch computes: ``torch.<method>`` where nothing is given."""

ELSEWHERE = {"hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish", "log_sigmoid": "logsigmoid"}
"""Methods whose operator has another name."""


def _mapped(value: Any, function: Callable[[np.ndarray], Any]) -> Any:
    if isinstance(value, list):
        return [_mapped(item, function) for item in value]
    return function(value) if isinstance(value, np.ndarray) else value


def _computed(found: Any, variables: list[Any], values: list[Any]) -> list[Any]:
    if isinstance(found, TupleWrapper):
        found = list(found)
    if not isinstance(found, list | tuple):
        found = [found]
    run = Interpreter()
    return [
        run.run(relay.Function(variables, one), values) if isinstance(one, RelayExpr) else one
        for one in found
    ]


@pytest.mark.parametrize(("name", "given", "reference"), CASES, ids=[one[0] for one in CASES])
def test_a_method_converts_its_operator(
    converter: PyTorchOpConverter, name: str, given: list[Any], reference: Callable[..., Any] | None
) -> None:
    """For a variable as the first input, and constants."""
    variables: list[Any] = []
    inputs = _mapped(given, relay.const)
    if given and isinstance(given[0], np.ndarray):
        variables = [relay.var("x", shape=given[0].shape, dtype=str(given[0].dtype))]
        inputs[0] = variables[0]
    found = _computed(getattr(converter, name)(inputs, []), variables, given[: len(variables)])
    compute = reference or getattr(torch, name, None) or getattr(F, ELSEWHERE.get(name, name))
    wanted = compute(*_mapped(given, torch.from_numpy))
    expected = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        if theirs is not None:
            np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-4, atol=1e-5)


def value(expr: Any) -> Any:
    """What an expression without free variables computes."""
    return Interpreter().run(expr)


def test_families(converter: PyTorchOpConverter) -> None:
    """Functions that make conversions."""
    row, other, image = relay.const(ROW), relay.const(OTHER), relay.const(IMAGE)
    whole = relay.const(np.asarray([1, 4]))
    x = torch.from_numpy(IMAGE)
    np.testing.assert_allclose(value(converter.make_elemwise("add")([row, other], [])), ROW + OTHER)
    np.testing.assert_allclose(value(converter.make_unary("sqrt")([whole], [])), [1, 2])
    np.testing.assert_allclose(
        value(converter.make_reduce("sum")([row, [1], True], [])), ROW.sum(1, keepdims=True), rtol=1e-5
    )
    pooled = converter.make_avg_pool(2)([image, [2, 2], [2, 2], [0, 0], False, True, None], [])
    np.testing.assert_allclose(value(pooled), F.avg_pool2d(x, 2), rtol=1e-5)
    for mode, name in (("constant", "constant"), ("reflect", "reflect"), ("edge", "replicate")):
        padded = converter.make_pad(mode)([image, [1, 1, 2, 0]], [])
        np.testing.assert_allclose(value(padded), F.pad(x, (1, 1, 2, 0), name))
    larger = converter.make_upsample("nearest_neighbor")([image, [12, 12], None], [])
    np.testing.assert_allclose(value(larger), F.interpolate(x, (12, 12)))
    cube = real(1, 1, 2, 2, 2)
    larger = converter.make_upsample3d("nearest_neighbor")([relay.const(cube), [4, 4, 4], None], [])
    np.testing.assert_allclose(value(larger), F.interpolate(torch.from_numpy(cube), (4, 4, 4)))
    assert converter.get_upsample_out_size([image, None, [2.0, 3.0]], "nearest_neighbor") == [12, 18]
    averages = converter.adaptive_avg_pool(relay.nn.adaptive_avg_pool2d, [image, [2, 3]], [])
    np.testing.assert_allclose(value(averages), F.adaptive_avg_pool2d(x, (2, 3)), rtol=1e-5)
    greatest, _ = converter.adaptive_max_pool(relay.nn.adaptive_max_pool2d, [image, [2, 3]], [])
    np.testing.assert_allclose(value(greatest), F.adaptive_max_pool2d(x, (2, 3)))
    assert value(converter.min_max_common("minimum", "min", [row], [])) == ROW.min()
    found = converter.all_any_common(relay.op.any, [relay.const(FLAGS), 1], [])
    np.testing.assert_array_equal(value(found), FLAGS.any(1))
    places = converter.searchsorted_common(relay.const(SORTED), relay.const(np.float32(4)), False, True)
    assert value(places) == 2
    np.testing.assert_array_equal(value(converter.full_impl([2, 3], 4, "int32")), np.full((2, 3), 4))


def test_what_converters_ask(converter: PyTorchOpConverter) -> None:
    """Types, shapes, numbers and lists."""
    x = relay.var("x", shape=(2, 3), dtype="int8")
    assert converter.infer_type(x).dtype == "int8" and converter.infer_type_with_prelude(x).shape[1] == 3
    assert tuple(converter.infer_shape(x)) == tuple(converter.infer_shape_with_prelude(x)) == (2, 3)
    assert tuple(converter.get_dims(x)) == (2, 3) and converter.is_quantized_tensor(x)
    converter.record_output_type([x])
    assert converter.types[x].dtype == "int8"
    promoted = converter.pytorch_promote_types([x, relay.const(1.0)], ["int8", "float32"])
    assert [converter.infer_type(one).dtype for one in promoted] == ["float32", "float32"]
    assert converter.convert_const_list([1, relay.const(2)]) == [1, 2]
    listed = converter.convert_to_list_adt([relay.const(1), relay.const(2)])
    length = Interpreter(converter.prelude.mod).run(converter.prelude.length(listed))
    assert int(length) == 2


def test_the_table_of_conversions() -> None:
    """A conversion of one's own wins; missing ones are named in one error."""
    converter = PyTorchOpConverter(Prelude(tvm.IRModule()), "float32")
    converter.create_convert_map()
    converter.update_convert_map({"my::twice": lambda inputs, types: inputs[0] + inputs[0]})
    assert value(converter.convert_map["my::twice"]([relay.const(2.0)], ["float32"])) == 4
    np.testing.assert_allclose(value(converter.convert_map["aten::neg"]([relay.const(ROW)], [])), -ROW)
    converter.report_missing_conversion(["aten::relu", "my::twice", "prim::If"])
    with pytest.raises(OpNotImplemented, match="other::thing"):
        converter.report_missing_conversion(["aten::relu", "other::thing"])


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_recurrent_layers(converter: PyTorchOpConverter, kind: str) -> None:
    """Two directions, step by step, and the operators themselves, as PyTorch's layers have it."""
    layer = getattr(torch.nn, kind.upper())(4, 3, bidirectional=True)
    steps = real(2, 1, 4)
    with torch.no_grad():
        wanted, state = layer(torch.from_numpy(steps))
    names = ("w_inp", "w_hid", "b_inp", "b_hid")
    parameters = [relay.const(one.detach().numpy()) for one in layer.parameters()]
    zeros = relay.const(np.zeros((1, 3), "float32"))
    states = {"hidden_state": zeros} | ({"cell_state": zeros} if kind == "lstm" else {})
    weights = [{**dict(zip(names, parameters[4 * way :], strict=False)), **states} for way in (0, 1)]
    items = [relay.const(step) for step in steps]
    found = (
        converter.gru_layers(items, [weights], True)
        if kind == "gru"
        else converter.lstm_layers(items, [weights], True, "float32")
    )
    np.testing.assert_allclose(value(found[0]), wanted, rtol=1e-4, atol=1e-5)
    last = state if kind == "gru" else state[0]
    np.testing.assert_allclose(value(found[1]), last, rtol=1e-4, atol=1e-5)
    joined, *_ = getattr(converter, f"bidir_{kind}_cell")(items, weights)
    np.testing.assert_allclose(value(joined[1]), wanted[1], rtol=1e-4, atol=1e-5)
    both = relay.const(np.zeros((2, 1, 3), "float32"))
    start = both if kind == "gru" else [both, both]
    whole = getattr(converter, kind)(
        [relay.const(steps), start, parameters, True, 1, 0.0, False, True, False], []
    )
    np.testing.assert_allclose(value(list(whole)[0]), wanted, rtol=1e-4, atol=1e-5)


def test_torchvision_operators(converter: PyTorchOpConverter) -> None:
    """Those of a library whose schemas need not be there."""
    boxes = np.asarray([[0, 0, 2, 2], [0, 0, 2, 2.1], [3, 3, 4, 4]], "float32")
    scores = np.asarray([0.9, 0.8, 0.7], "float32")
    kept = value(converter.nms([relay.const(boxes), relay.const(scores), 0.5], []))
    np.testing.assert_array_equal(kept, [0, 2])
    rois = np.asarray([[0, 0, 0, 4, 4]], "float32")
    pooled = converter.roi_align(
        [relay.const(np.ones_like(IMAGE)), relay.const(rois), 1.0, 2, 2, 2, False], []
    )
    np.testing.assert_allclose(value(pooled), np.ones((1, 2, 2, 2)))
    offset = np.zeros((1, 18, 4, 4), "float32")
    weight = real(3, 2, 3, 3)
    moved = converter.deform_conv2d(
        [
            relay.const(IMAGE),
            relay.const(weight),
            relay.const(offset),
            relay.const(np.ones((1, 9, 4, 4), "float32")),
            relay.const(np.zeros(3, "float32")),
            1,
            1,
            0,
            0,
            1,
            1,
            1,
            1,
            False,
        ],
        [],
    )
    wanted = F.conv2d(torch.from_numpy(IMAGE), torch.from_numpy(weight))
    np.testing.assert_allclose(value(moved), wanted, rtol=1e-4, atol=1e-5)


def test_empty_has_the_shape(converter: PyTorchOpConverter) -> None:
    """Its elements are not defined."""
    made = converter.empty([[2, 3], 6, None, None, False, None], [])
    assert value(made).shape == (2, 3)


def test_parameters_of_a_graph() -> None:
    """Chains of attributes end at weights, which become variables and arrays."""
    model = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(2, 3)).eval(), torch.ones(1, 2))
    graph = model.graph.copy()
    torch._C._jit_pass_inline(graph)
    root = next(node for node in graph.nodes() if node.kind() == "prim::GetAttr")
    chains = [[node.s("name") for node in chain] for chain in get_attr_chains(root)]
    assert sorted(chains) == [["0", "bias"], ["0", "weight"]]
    assert all(chain[0] == root for chain in get_use_chains(root))
    variables, arrays, packed = convert_params(graph, model.state_dict(), use_parser_friendly_name=True)
    assert {one.name_hint for one in variables.values()} == {"0_weight", "0_bias"} and not packed
    np.testing.assert_array_equal(arrays["0_bias"].numpy(), model.state_dict()["0.bias"].numpy())


def test_blocks_of_a_graph() -> None:
    """A whole graph by its nodes, with a condition on a value of the program and one that is known."""

    def chosen(x: torch.Tensor, flag: bool) -> torch.Tensor:
        if bool(x.sum() > 0):
            y = torch.cat([x, x], 0)
        else:
            y = torch.cat([x, -x], 0)
        if flag:
            y = y * 2
        return y

    graph = torch.jit.script(chosen).graph
    torch._C._jit_pass_inline(graph)
    first, second = (one.debugName() for one in graph.inputs())
    x = relay.var("x", shape=(2,))
    converter = PyTorchOpConverter(Prelude(tvm.IRModule()), "float32")
    (found,) = converter.convert_block(graph, {first: x, second: True})
    for data in (np.float32([1, 2]), np.float32([-1, -2])):
        wanted = chosen(torch.from_numpy(data), True)
        np.testing.assert_allclose(Interpreter().run(relay.Function([x], found), [data]), wanted)
    nodes = [(node.output().debugName(), node) for node in graph.nodes()]
    del converter.convert_map["aten::sum"]
    with pytest.raises(OpNotImplemented, match="aten::sum"):
        converter.convert_operators(nodes, {first: x, second: True}, [])
    condition = next(node for node in graph.nodes() if node.kind() == "prim::If")
    values = {
        node.output().debugName(): node.output().toIValue()
        for node in graph.nodes()
        if node.kind() == "prim::Constant"
    }
    values |= {first: x, next(condition.inputs()).debugName(): False}
    made = converter.convert_if(condition, values)
    np.testing.assert_allclose(
        Interpreter().run(relay.Function([x], made), [np.float32([1, 2])]), [1, 2, -1, -2]
    )


@pytest.mark.parametrize("steps", [3, 100])
def test_loops_of_a_graph(steps: int) -> None:
    """Short loops are written out; long ones, and those that a value ends, become recursive functions."""

    def doubled(x: torch.Tensor, steps: int) -> torch.Tensor:
        y = x
        for place in range(steps):
            y = y + x * place
        while bool(y.sum() < 1000):
            y = y * 2
        return y

    graph = torch.jit.script(doubled).graph
    first, second = (one.debugName() for one in graph.inputs())
    x = relay.var("x", shape=(2,))
    converter = PyTorchOpConverter(Prelude(tvm.IRModule()), "float32")
    (found,) = converter.convert_block(graph, {first: x, second: steps})
    data = np.float32([0.25, 0.5])
    wanted = doubled(torch.from_numpy(data), steps)
    np.testing.assert_allclose(Interpreter().run(relay.Function([x], found), [data]), wanted, rtol=1e-5)
