"""Small names of ``te`` and ``arith``: axes of tensors, kinds of operations, sets of integers, iterator maps."""

from __future__ import annotations

import pytest

import tilewright as tvm
from tilewright import arith, relay, te, tir
from tilewright.arith.iter_affine_map import IterMapExpr
from tilewright.te.tensor import BaseComputeOp


def test_axes_of_tensors() -> None:
    """Those of the operation that makes the tensor; a placeholder has none to schedule."""
    a = te.placeholder((4, 6), name="a")
    b = te.compute((6, 4), lambda i, j: a[j, i] + 1, name="b")
    assert [axis.var.name for axis in b.axis] == ["i", "j"]
    assert list(b.axis) == list(b.op.axis) and [int(axis.dom.extent) for axis in b.axis] == [6, 4]
    assert list(a.axis) == []
    schedule = te.create_schedule(b.op)
    outer, inner = schedule[b].split(b.axis[0], factor=2)
    assert outer in schedule[b].leaf_iter_vars and inner in schedule[b].leaf_iter_vars


def test_operations_that_compute() -> None:
    """Expressions and intrinsics an element are one kind; placeholders, external functions and scans are not."""
    a = te.placeholder((8, 4), name="a")
    k = te.reduce_axis((0, 4), name="k")
    assert isinstance(te.compute((8,), lambda i: te.sum(a[i, k], axis=k)).op, BaseComputeOp)
    external = te.extern((8,), [a], lambda ins, outs: tir.call_packed("f", ins[0], outs[0]), name="c")
    state = te.placeholder((8, 4))
    scanned = te.scan(
        te.compute((1, 4), lambda _, j: a[0, j]),
        te.compute((8, 4), lambda t, j: state[t - 1, j] + a[t, j]),
        state,
        inputs=[a],
    )
    for tensor in (a, external, scanned):
        assert not isinstance(tensor.op, BaseComputeOp)

    x, y = te.placeholder((4,), name="x"), te.placeholder((4,), name="y")
    z = te.compute((4,), lambda i: x[i] + y[i], name="z")
    intrinsic = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_packed("add", ins[0], ins[1], outs[0]))
    many = te.compute((8,), lambda i: intrinsic(a[i, 0:4], a[i, 0:4]))
    assert isinstance(many.op, te.TensorComputeOp) and isinstance(many.op, BaseComputeOp)


def test_sets_of_integers() -> None:
    """All integers, none, and what is between; other kinds of sets say neither unless they know better."""
    everything = arith.IntervalSet(arith.int_set.neg_inf(), arith.int_set.pos_inf())
    nothing = arith.IntervalSet(arith.int_set.pos_inf(), arith.int_set.neg_inf())
    some = arith.IntervalSet(0, 7)
    single = arith.IntSet.single_point(tir.Var("n", "int32"))
    from_below = arith.IntervalSet(0, arith.int_set.pos_inf())
    assert [one.is_everything() for one in (everything, nothing, some, single, from_below)] == [True] + [
        False
    ] * 4
    assert [one.is_nothing() for one in (everything, nothing, some, single, from_below)] == [False, True] + [
        False
    ] * 3

    class Even(arith.IntSet):
        """The even integers."""

        def is_everything(self) -> bool:
            return super().is_everything()

        def is_nothing(self) -> bool:
            return super().is_nothing()

    assert not Even().is_everything() and not Even().is_nothing()


def test_iterator_maps() -> None:
    """What detection gives are expressions of this kind; the indices it was asked about are not."""
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    index = i * 4 + j
    (found,) = arith.detect_iter_map([index], {i: tvm.ir.Range(0, 8), j: tvm.ir.Range(0, 4)})
    assert isinstance(found, IterMapExpr) and not isinstance(index, IterMapExpr)
    (part,) = found.args
    assert isinstance(part, IterMapExpr) and int(part.extent) == 32
    assert not arith.detect_iter_map([i // 3 + j], {i: tvm.ir.Range(0, 8), j: tvm.ir.Range(0, 4)})


def test_sources_of_modules() -> None:
    """In each format that the module has; another is an error."""
    a = te.placeholder((4,), name="a")
    module = tvm.build(
        te.create_schedule((b := te.compute((4,), lambda i: a[i] + 1)).op), [a, b], "llvm", name="inc"
    )
    assert "define" in module.get_source() and "inc" in module.get_source("ll")
    assert ".text" in module.get_source("asm")
    with pytest.raises(tvm.error.TVMError):
        module.get_source("no_such_format")
    source = tvm.build(te.create_schedule(b.op), [a, b], "c", name="inc").get_source()
    assert "#include <stdint.h>" in source and "inc(" in source


def test_modules_without_source() -> None:
    """What holds a graph and its parameters has none to show, and says which kind of module it is."""
    x = relay.var("x", shape=(4,))
    factory = relay.build(tvm.IRModule.from_expr(relay.exp(x)), "llvm").module
    with pytest.raises(ValueError, match="module has no source in the format 'll'"):
        factory.get_source("ll")
