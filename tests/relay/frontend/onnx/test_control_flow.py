"""If, Loop and Scan: chosen and written out where all is known, programs otherwise."""

import numpy as np
import onnx
import pytest

from tilewright import relay
from tilewright.relay.frontend import from_onnx
from tilewright.relay.frontend.common.needs import ValueNeeded
from tilewright.relay.frontend.onnx import backend
from tilewright.support.errors import ModelError

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'

BRANCHES = (
    HEAD
    + """
agraph (bool c, float[4] x) => (float[n] y) {
    y = If(c) <
        then_branch = yes () => (float[m] t) { t = Add(x, x) },
        else_branch = no () => (float[m] e) {
            first = Constant<value_ints = [1]>()
            last = Constant<value_ints = [3]>()
            e = Slice(x, first, last)
        }
    >
}
"""
)

# Sums of powers: the state is multiplied, every turn shows its value.
POWERS = (
    HEAD
    + """
agraph (int64 n, float[2] x) => (float[2] last, float[m, 2] every) {
    go = Constant<value = bool {1}>()
    twice = Add(x, x)
    last, every = Loop(n, go, x) <
        body = turn (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] s) {
            d = Identity(c)
            w = Mul(v, twice)
            s = Identity(w)
        }
    >
}
"""
)

GROWING = (
    HEAD
    + """
agraph (int64 n, float[1] x) => (float[m] y) {
    go = Constant<value = bool {1}>()
    y = Loop(n, go, x) <
        body = turn (int64 i, bool c, float[k] v) => (bool d, float[l] w) {
            d = Identity(c)
            w = Concat<axis = 0>(v, x)
        }
    >
}
"""
)

WHILE = (
    HEAD
    + """
agraph (float limit, float x) => (float y) {
    none = Identity(x)
    start = Less(x, limit)
    y = Loop("", start, x) <
        body = turn (int64 i, bool c, float v) => (bool d, float w) {
            w = Add(v, v)
            d = Less(w, limit)
        }
    >
}
"""
)

SCAN = (
    HEAD
    + """
agraph (float[2] start, float[2, STEPS] x) => (float[2] last, float[2, STEPS] every) {
    last, every = Scan <
        num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        scan_output_axes = [1], scan_output_directions = [1],
        body = turn (float[2] state, float[2] now) => (float[2] next, float[2] shown) {
            next = Add(state, now)
            shown = Identity(next)
        }
    > (start, x)
}
"""
)


def _scan(steps):
    return onnx.parser.parse_model(SCAN.replace("STEPS", str(steps)))


def _has(module, kind):
    """True if a module has an expression of a kind."""
    found = []
    relay.analysis.post_order_visit(module["main"], lambda one: found.append(isinstance(one, kind)))
    return any(found)


@pytest.mark.parametrize("executor", ["debug", "vm"])
def test_branches_of_different_lengths(executor):
    """The dimension in which the branches differ is open."""
    prepared = backend.prepare(onnx.parser.parse_model(BRANCHES), executor=executor)
    data = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(prepared.run([np.asarray(True), data])[0], data * 2)
    np.testing.assert_array_equal(prepared.run([np.asarray(False), data])[0], data[1:3])


def test_known_conditions_choose_their_branch():
    """Nothing of the If is left."""
    model = onnx.parser.parse_model(BRANCHES)
    module, _ = from_onnx(model, convert_config={"values": {"c": np.asarray(False)}})
    assert not _has(module, relay.If)
    assert [int(extent) for extent in module["main"].checked_type.ret_type.shape] == [2]


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_loop_with_results(turns):
    """A number of turns that is an input; what the turns show is stacked."""
    prepared = backend.prepare(onnx.parser.parse_model(POWERS), executor="debug")
    data = np.asarray([1.0, 0.5], "float32")
    last, every = prepared.run([np.asarray(turns), data])
    expected = [data * (2 * data) ** (turn + 1) for turn in range(turns)]
    np.testing.assert_allclose(every, np.asarray(expected).reshape(turns, 2))
    np.testing.assert_allclose(last, expected[-1] if expected else data)


def test_loop_compiled():
    """The same on the virtual machine, with as many turns as one likes."""
    prepared = backend.prepare(onnx.parser.parse_model(POWERS))
    assert prepared.chosen == "vm"
    data = np.asarray([0.5, 0.5], "float32")
    for turns in (3, 300):
        last, every = prepared.run([np.asarray(turns), data])
        np.testing.assert_array_equal(last, data)
        assert every.shape == (turns, 2)


def test_loops_are_written_out():
    """A known number of turns leaves no loop; what the loop uses of the outside is shared, not repeated."""
    model = onnx.parser.parse_model(POWERS)
    module, _ = from_onnx(model, convert_config={"values": {"n": np.asarray(3)}})
    assert not _has(module, relay.Function) or len(module.functions) == 1
    assert not _has(module, relay.Let)
    found = []
    relay.analysis.post_order_visit(
        module["main"], lambda one: found.append(isinstance(one, relay.Call) and one.op.name == "add")
    )
    assert sum(found) == 1


def test_loop_invariants_are_computed_once():
    """What a loop uses of the outside is bound before the loop."""
    module, _ = from_onnx(onnx.parser.parse_model(POWERS))
    text = module.astext()
    assert text.index("add(%x, %x)") < text.index("fn (%turn")


@pytest.mark.parametrize("executor", ["debug", "vm"])
def test_values_that_grow(executor):
    """A state whose size changes from turn to turn."""
    prepared = backend.prepare(onnx.parser.parse_model(GROWING), executor=executor)
    (found,) = prepared.run([np.asarray(5), np.asarray([3.0], "float32")])
    np.testing.assert_array_equal(found, [3.0] * 6)


def test_while():
    """A condition alone."""
    prepared = backend.prepare(onnx.parser.parse_model(WHILE), executor="debug")
    assert prepared.run([np.asarray(20, "float32"), np.asarray(3, "float32")])[0] == 24
    assert prepared.run([np.asarray(2, "float32"), np.asarray(3, "float32")])[0] == 3


@pytest.mark.parametrize("steps", [5, 40])
def test_scan_backwards_along_another_axis(steps):
    """Inputs and outputs turned around, along the second axis; written out and as a loop."""
    data = np.arange(2 * steps, dtype="float32").reshape(2, steps)
    start = np.asarray([1.0, 2.0], "float32")
    last, every = backend.prepare(_scan(steps), executor="debug").run([start, data])
    sums = start[:, None] + np.cumsum(data[:, ::-1], 1)
    np.testing.assert_array_equal(every, sums[:, ::-1])
    np.testing.assert_array_equal(last, sums[:, -1])


def test_long_scans_compile():
    """A loop whose number of turns is known gives a result of known size."""
    module, _ = from_onnx(_scan(40))
    assert [int(extent) for extent in module["main"].checked_type.ret_type.fields[1].shape] == [2, 40]
    data, start = np.ones((2, 40), "float32"), np.zeros(2, "float32")
    last, _ = backend.prepare(_scan(40)).run([start, data])
    np.testing.assert_array_equal(last, [40, 40])


def test_results_of_different_ranks_need_the_condition():
    """No type has both; the backend compiles for the condition that it is given."""
    text = BRANCHES.replace(
        "e = Slice(x, first, last)", "z = Constant<value_ints = [0]>() e = Unsqueeze(x, z)"
    )
    model = onnx.parser.parse_model(text)
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None))
    with pytest.raises(ValueNeeded, match="the condition of branches"):
        from_onnx(model)
    prepared = backend.prepare(model, executor="debug")
    assert prepared.run([np.asarray(True), np.zeros(4, "float32")])[0].shape == (4,)
    assert prepared.run([np.asarray(False), np.zeros(4, "float32")])[0].shape == (1, 4)


# As exporters guard a squeeze. What follows depends on the rank, and has one type in the end.
GUARDED = (
    HEAD
    + """
agraph (float[n, 3, k] x) => (float[n, m] y, float[n, m] z) {
    last = Constant<value_ints = [2]>()
    one = Constant<value_ints = [1]>()
    shape = Shape(x)
    extent = Gather(shape, last)
    fits = Equal(extent, one)
    flat = If(fits) <
        then_branch = yes () => (float[a, b] t) { t = Squeeze(x, last) },
        else_branch = no () => (float[a, b, c] e) { e = Identity(x) }
    >
    twice = Add(flat, flat)
    form = Shape(twice)
    rank = Size(form)
    two = Constant<value_int = 2>()
    is_flat = Equal(rank, two)
    y = If(is_flat) <
        then_branch = keep () => (float[a, b] p) { p = Identity(twice) },
        else_branch = sum () => (float[a, b] q) { q = ReduceSum<keepdims = 0>(twice, last) }
    >
    z = Neg(y)
}
"""
)


@pytest.mark.parametrize("executor", ["vm", "debug"])
def test_what_depends_on_a_rank_is_converted_for_either(executor):
    """The ranks of the two branches differ, and no condition is known at import."""
    prepared = backend.prepare(onnx.parser.parse_model(GUARDED), executor=executor)
    for shape in ((2, 3, 1), (2, 3, 4)):
        x = np.random.default_rng(0).standard_normal(shape).astype("float32")
        y, z = prepared.run([x])
        np.testing.assert_allclose(y, 2 * x.sum(-1), rtol=1e-6)
        np.testing.assert_array_equal(z, -y)


def test_a_branch_that_does_not_fit_stops_the_program():
    """It can be compiled, and the other branch runs; the reason is given when the program gets there."""
    text = BRANCHES.replace("e = Slice(x, first, last)", "e = MatMul(x, first)")
    prepared = backend.prepare(onnx.parser.parse_model(text), executor="vm")
    x = np.ones(4, "float32")
    np.testing.assert_array_equal(prepared.run([np.asarray(True), x])[0], [2, 2, 2, 2])
    with pytest.raises(Exception, match="a branch that does not fit: node 'e'"):
        prepared.run([np.asarray(False), x])


def test_two_branches_that_do_not_fit_are_an_error():
    """Nothing can be compiled."""
    text = BRANCHES.replace("Slice(x, first, last)", "MatMul(x, first)").replace("Add(x, x)", "Add(x)")
    with pytest.raises(ModelError, match="node 't'"):
        from_onnx(onnx.parser.parse_model(text))


def test_conditions_that_have_nothing_to_do_with_each_other_are_bounded():
    """Each would double the number of values that stay apart."""
    lines = [
        f"""r{number} = If(c{number}) <
            then_branch = yes () => (float[a] t{number}) {{ t{number} = Identity(x) }},
            else_branch = no () => (float[a, b] e{number}) {{ e{number} = Unsqueeze(x, z) }}
        >"""
        for number in range(6)
    ]
    inputs = ", ".join(f"bool c{number}" for number in range(6))
    added = " ".join(f"s{number + 1} = Add(s{number}, r{number})" for number in range(6))
    text = f"""{HEAD} agraph ({inputs}, float[4] x) => (float[n, m] y) {{
        z = Constant<value_ints = [0]>() {" ".join(lines)} s0 = Identity(x) {added} y = Identity(s6)
    }}"""
    with pytest.raises(ValueNeeded, match="choose from 32 values"):
        from_onnx(onnx.parser.parse_model(text))


# As the exporter of PyTorch writes an embedding bag: only the condition says how often the loop runs.
BAG = (
    HEAD
    + """
agraph (float[4, 2] x) => (float[n, 2] y) {
    go = Constant<value = bool {1}>()
    zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>()
    end = Constant<value_ints = [4]>()
    empty = SequenceEmpty()
    rows, index = Loop("", go, empty, zero) <
        body = turn (int64 i, bool c, seq(float[1, 2]) s, int64[1] v) => (bool d, seq(float[1, 2]) t, int64[1] w) {
            w = Add(v, one)
            row = Slice(x, v, w)
            t = SequenceInsert(s, row)
            open = Less(w, end)
            d = Squeeze(open)
        }
    >
    y = ConcatFromSequence<axis = 0>(rows)
}
"""
)


def test_a_loop_over_sequences_may_have_only_a_condition():
    """It is written out as long as the condition after a turn is known."""
    x = np.arange(8, dtype="float32").reshape(4, 2)
    np.testing.assert_array_equal(backend.prepare(onnx.parser.parse_model(BAG)).run([x])[0], x)


def test_a_loop_over_sequences_that_never_ends_is_an_error():
    """It is not written out for ever."""
    text = BAG.replace("d = Squeeze(open)", "d = Identity(c)")
    with pytest.raises(ModelError, match="how often a loop over sequences runs"):
        from_onnx(onnx.parser.parse_model(text))


def test_loops_within_loops_are_written_out_within_limits():
    """Each of 32 turns, eight deep, would be a trillion nodes."""
    inner = "w0 = Add(v0, x) d0 = Identity(c0)"
    for depth in range(1, 8):
        inner = f"""w{depth} = Loop(n, go, v{depth}) <
            body = turn{depth} (int64 i{depth}, bool c{depth - 1}, float[1] v{depth - 1})
                => (bool d{depth - 1}, float[1] w{depth - 1}) {{ {inner} }}
        > d{depth} = Identity(c{depth})"""
    text = f"""{HEAD} agraph (float[1] x) => (float[1] w8) {{
        n = Constant<value_int = 32>() go = Constant<value = bool {{1}}>()
        w8 = Loop(n, go, x) < body = turn (int64 i, bool c7, float[1] v7) => (bool d7, float[1] w7) {{ {inner} }} >
    }}"""
    module, _ = from_onnx(onnx.parser.parse_model(text))
    assert _has(module, relay.If)


def test_a_loop_keeps_its_types():
    """A state can not change its element type."""
    text = GROWING.replace("w = Concat<axis = 0>(v, x)", "w = Cast<to = 7>(v)").replace(
        "float[l] w", "int64[l] w"
    )
    with pytest.raises(ModelError, match="before a turn and"):
        from_onnx(onnx.parser.parse_model(text))
