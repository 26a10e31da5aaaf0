"""Whole scripts, one a feature of the language."""

# ruff: noqa: F821

from __future__ import annotations

import numpy as np
import pytest
from tests.te.hybrid.checks import check_everywhere, close, run_lowered

import tilewright as tvm
from tilewright import te
from tilewright.support.errors import ParseError
from tilewright.te.hybrid import HybridOp, script


@script
def outer_product(n, m, a, b):
    """Text before the statements is a comment."""
    c = output_tensor((n, m), a.dtype)
    for i in range(n):
        for j in range(m):
            assert i < n and j < m, "index out of range!"
            c[i, j] = a[i] * b[j]
    return c


def test_symbolic_sizes() -> None:
    """Variables are arguments, and shapes may use them."""
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    results = check_everywhere(outer_product, [n, m, a, b], {n: 5, m: 7})
    assert results[0].shape == (5, 7)


def test_operation() -> None:
    """The operation has the function's name, the loops as axes, and its inputs in the order of the arguments."""
    a, b = te.placeholder((5,), name="a"), te.placeholder((7,), name="b")
    c = outer_product(5, 7, b=b, a=a)
    assert isinstance(c.op, HybridOp)
    assert c.op.name == "outer_product"
    assert [axis.var.name for axis in c.op.axis] == ["i", "j"]
    assert [axis.dom.extent.value for axis in c.op.axis] == [5, 7]
    assert c.op.inputs == (a, b)
    assert [int(extent) for extent in c.shape] == [5, 7]


def test_fanout() -> None:
    """A local variable that is assigned again is one element of memory, which lives inside its loop."""

    @script
    def fanout(n, a):
        three = 3.0
        b = output_tensor((a.shape[0] - 3,), a.dtype)
        for i in range(a.shape[0] - 3):
            sigma = 0.0
            for j in range(3):
                sigma += a[i + j]
            sigma = sigma / three
            b[i] = sigma
        return b

    n = te.var("n")
    a = te.placeholder((n,), name="a")
    loop = fanout(n, a).op.body
    assert isinstance(loop, tvm.tir.For) and loop.loop_var.name == "i"
    assert tvm.ir.structural_equal(loop.extent, n - 3)
    realize = loop.body
    assert isinstance(realize, tvm.tir.ProducerRealize) and realize.producer.op.name == "sigma"
    first, inner, divide, write = realize.body
    assert isinstance(first, tvm.tir.ProducerStore) and first.value.value == 0.0
    assert isinstance(inner, tvm.tir.For) and isinstance(inner.body.value, tvm.tir.Add)
    assert isinstance(divide.value, tvm.tir.Div) and divide.value.b.value == 3.0
    assert write.producer.op.name == "b" and write.value.producer.op.name == "sigma"
    check_everywhere(fanout, [n, a], {n: 10})


def test_constant_parameters() -> None:
    """Constants of the tensor language are arguments."""

    @script
    def add_something(a, b):
        c = output_tensor((11,), "int32")
        for i in range(11):
            c[i] = a[i] + b
        return c

    a = te.placeholder((11,), "int32", name="a")
    c = add_something(a, tvm.tir.const(11, "int32"))
    assert c.op.inputs == (a,)
    values = np.arange(11, dtype="int32")
    run_lowered(te.create_schedule(c.op), [a, c], [values], [values + 11])
    close(add_something(values, 11), values + 11)


def test_captured_values() -> None:
    """Numbers, tuples and lists around the script are constants in it."""
    n = 8
    pair = (10, n)
    table = [[1, 2], [3, n]]
    one = 1

    @script
    def add_something(a):
        c = output_tensor((pair[1],), "int32")
        for i in range(pair[1]):
            c[i] = a[i] + table[1][one] + table[0, 0] if False else a[i] + table[1][one]
        return c

    check_everywhere(add_something, [te.placeholder((n,), "int32", name="a")])


def test_lists_of_tensors() -> None:
    """A list of tensors is indexed with constants. An output that is only added to starts at zero."""

    @script
    def total(inputs):
        out = output_tensor((10,), inputs[0].dtype)
        n = len(inputs)
        for i in range(10):
            for j in const_range(n):
                out[i] += inputs[j][i]
        return out

    inputs = [te.placeholder((10,), name=f"a{index}") for index in range(5)]
    out = total(tvm.convert(inputs))
    assert out.op.inputs == tuple(inputs)
    values = [np.random.default_rng(index).random(10, "float32") for index in range(5)]
    run_lowered(te.create_schedule(out.op), [*inputs, out], values, [sum(values)])
    close(total(values), sum(values))


def test_allocated_memory() -> None:
    """``allocate`` makes memory for the loop it stands in, with a storage scope."""

    @script
    def blur(a):
        b = output_tensor((30, 30), "float32")
        for i in range(30):
            rows = allocate((3, 30), "float32", "local")
            for j in range(3):
                for k in range(30):
                    rows[j, k] = a[i + j, k] + a[i + j, k + 1] + a[i + j, k + 2]
            for j in range(30):
                b[i, j] = (rows[0, j] + rows[1][j] + rows[-1, j]) / 9.0
        return b

    a = te.placeholder((32, 32), name="a")
    realize = blur(a).op.body.body
    assert realize.storage_scope == "local" and len(realize.bounds) == 2
    check_everywhere(blur, [a])


def test_several_outputs() -> None:
    """A script returns several tensors as a list, in the order of its return statement."""

    @script
    def both(a):
        b = output_tensor((16,), "int32")
        c = output_tensor((4, 4), "int32")
        unused = output_tensor((16,), "int32")
        for i in range(16):
            unused[i] = a[i] * 5
            b[i] = a[i] + 2
            c[i // 4, i % 4] = unused[i] + 1
        return c, b

    a = te.placeholder((16,), "int32", name="a")
    c, b = both(a)
    assert [len(tensor.shape) for tensor in (c, b)] == [2, 1]
    check_everywhere(both, [a])


def test_tuple_assignment() -> None:
    """All values are read before the first is stored."""

    @script
    def fibonacci(a):
        b = output_tensor((10,), "int32")
        x, y = 0, 1
        for i in range(10):
            b[i] = x + a[i]
            x, y = y, x + y
        b[0], b[1] = b[1], b[0]
        p = q = b[2]
        p += 1
        b[2] = p + q
        return b

    check_everywhere(fibonacci, [te.placeholder((10,), "int32", name="a")])


def test_a_variable_has_the_type_of_all_its_values() -> None:
    """A variable that starts as an integer and gets floats is a float, as in Python."""

    @script
    def mean(a):
        b = output_tensor((1,), "float64")
        total = 0
        count = 0
        for i in range(a.shape[0]):
            total += a[i]
            count += 1
        b[0] = total / count
        return b

    check_everywhere(mean, [te.placeholder((9,), "float64", name="a")])


def test_calls_of_scripts() -> None:
    """A script that calls another contains it; inputs that are placeholders may be written."""

    @script
    def sums(a):
        b = output_tensor(a.shape, a.dtype)
        c = output_tensor(a.shape, a.dtype)
        for i in range(len(a)):
            b[i] = a[i] + 1.0
            c[i] = a[i] - 1.0
        return b, c

    @script
    def caller(a, b):
        for i in range(len(a)):
            a[i] = i + 1.0
        c = outer_product(10, 10, a, b)
        more, less = sums(a)
        d = output_tensor(c.shape, c.dtype)
        for i in range(10):
            for j in range(10):
                d[i, j] = c[i, j] + i * j + more[i] * less[j]
        return d

    arguments = [te.placeholder((10,), name="a"), te.placeholder((10,), name="b")]
    d = caller(*arguments)
    assert d.op.inputs == tuple(arguments)
    assert len(d.op.axis) == 6
    check_everywhere(caller, arguments)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "int8"])
@pytest.mark.parametrize("size_type", ["int32", "int64"])
def test_types(dtype: str, size_type: str) -> None:
    """Data and sizes of any type."""

    @script
    def products(n, a):
        b = output_tensor((n, n), a.dtype)
        for i in range(n):
            for j in range(n):
                s = a[i]
                s = s * a[j]
                b[i, j] = s
        return b

    n = te.var("n", size_type)
    check_everywhere(products, [n, te.placeholder((n,), dtype, name="a")], {n: 6})


def test_valid_counts() -> None:
    """A program with data-dependent indices, as detection models have."""

    @script
    def valid_counts(data, threshold, index, one):
        valid = output_tensor((data.shape[0],), "int32")
        out = output_tensor(data.shape, data.dtype)
        for i in parallel(data.shape[0]):
            valid[i] = 0
            for j in range(data.shape[1]):
                score = data[i, j, 0]
                if score > threshold and (index < 0 or data[i, j, index] >= 0):
                    for k in range(data.shape[2]):
                        out[i, valid[i], k] = data[i, j, k]
                    valid[i] += 1
                if j >= valid[i]:
                    for k in range(data.shape[2]):
                        out[i, j, k] = -one
        return valid, out

    data = te.placeholder((3, 7, 4), name="data")
    for index in (-1, 2):
        check_everywhere(valid_counts, [data, 0.5, index, 1.0])


def test_ndarrays_are_emulated() -> None:
    """Called with NDArrays a script runs in Python; what it writes to them stays."""

    @script
    def double(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            b[i] = a[i] * 2
            a[i] = 0
        return b

    for call in (double, lambda a: double(a=a)):
        a = tvm.nd.array(np.arange(4, dtype="int32"))
        assert call(a).tolist() == [0, 2, 4, 6]
        assert a.numpy().tolist() == [0, 0, 0, 0]


def test_emulation_leaves_the_module_alone() -> None:
    """The words of the language are bound for the call alone."""
    before = set(globals())
    outer_product(2, 2, np.ones(2), np.ones(2))
    assert set(globals()) == before


def test_around_computations() -> None:
    """A script reads computed tensors, and computations read it; neither need be an output."""

    @script
    def weighted(a):
        b = output_tensor((20,), "float32")
        for i in range(20):
            b[i] = a[i] * i
        return b

    a, b = te.placeholder((20,), name="a"), te.placeholder((20,), name="b")
    c = te.compute((20,), lambda i: a[i] + b[i], name="c")
    d = weighted(c)
    e = te.compute((20,), lambda i: d[i] - c[i], name="e")
    values = [np.random.default_rng(seed).random(20, "float32") for seed in (1, 2)]
    expected = sum(values) * np.arange(20) - sum(values)
    for outputs in ([e.op], [c.op, d.op, e.op]):
        run_lowered(te.create_schedule(outputs), [a, b, e], values, [expected.astype("float32")])
    cached = te.create_schedule(e.op)
    cached.cache_read(c, "global", [d])
    cached[c].vectorize(cached[c].split(c.op.axis[0], 4)[1])
    cached[d].parallel(d.op.axis[0])
    run_lowered(cached, [a, b, e], values, [expected.astype("float32")])


def test_computed_inside_of_a_reader() -> None:
    """A script may be computed in the loop of what reads it, whole each time."""

    @script
    def double(a):
        b = output_tensor((8,), a.dtype)
        for i in range(8):
            b[i] = a[i] * 2.0
        return b

    a = te.placeholder((8,), name="a")
    b = double(a)
    c = te.compute((8,), lambda i: b[i] + 1.0, name="c")
    schedule = te.create_schedule(c.op)
    schedule[b].compute_at(schedule[c], schedule[c].split(c.op.axis[0], 4)[0])
    values = np.arange(8, dtype="float32")
    run_lowered(schedule, [a, c], [values], [values * 2 + 1])


def test_scripts_of_scripts() -> None:
    """The outputs of one script are inputs of another."""

    @script
    def parts(a):
        b = output_tensor((16,), "int32")
        c = output_tensor((4, 4), "int32")
        for i in range(16):
            b[i] = a[i] + 2
            c[i // 4, i % 4] = a[i] * 3
        return b, c

    @script
    def product(b, a):
        c = output_tensor((4, 4), "int32")
        for i in range(4):
            for j in range(4):
                c[i, j] = a[i * 4 + j] * b[i, j]
        return c

    a = te.placeholder((16,), "int32", name="a")
    b, c = parts(a)
    d = product(c, b)
    values = np.arange(16, dtype="int32")
    expected = ((values + 2) * values * 3).reshape(4, 4)
    run_lowered(te.create_schedule(d.op), [a, d], [values], [expected])


def test_extents_from_memory() -> None:
    """A loop may run as often as an input says."""

    @script
    def ragged(a, counts):
        b = output_tensor((4,), a.dtype)
        for i in range(4):
            total = 0.0
            for j in range(counts[i]):
                total += a[i, j]
            b[i] = total
        return b

    a, counts = te.placeholder((4, 5), name="a"), te.placeholder((4,), "int32", name="counts")
    doubled = te.compute((4,), lambda i: counts[i] * 2, name="doubled")
    b = ragged(a, doubled)
    values = np.random.default_rng(0).random((4, 5), "float32")
    lengths = np.array([1, 0, 2, 1], "int32")
    expected = ragged(values, lengths * 2)
    cached = te.create_schedule(b.op)
    cached.cache_read(doubled, "global", [b])
    for schedule in (te.create_schedule(b.op), cached):
        run_lowered(schedule, [a, counts, b], [values, lengths], [expected])


def test_a_script_shows_the_names_of_its_module() -> None:
    """``__globals__`` is the module's, without the names that scripts have in addition."""
    assert outer_product.__globals__ is globals()
    assert "output_tensor" not in outer_product.__globals__


def test_what_can_be_decorated() -> None:
    """Only a Python function with source text is a script, and it is called with its parameters."""
    with pytest.raises(ParseError, match="decorates a Python function"):
        script(3)  # type: ignore[arg-type]
    with pytest.raises(ParseError, match="missing a required argument: 'b'"):
        outer_product(2, 2, te.placeholder((2,)))

    namespace: dict[str, object] = {}
    exec("def unseen(a): return a", namespace)
    with pytest.raises(ParseError, match="source text of unseen cannot be read"):
        script(namespace["unseen"])(te.placeholder((2,)))
