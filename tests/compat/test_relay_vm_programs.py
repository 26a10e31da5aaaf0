"""What unit tests of programs on the virtual machine ask: the prelude, data types, loops, shapes that are not known."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
import tilewright.testing
from tilewright import relay
from tilewright.ir import IRModule
from tilewright.relay.prelude import Prelude
from tilewright.relay.scope_builder import ScopeBuilder
from tilewright.relay.testing import run_infer_type
from tilewright.runtime import container
from tilewright.runtime import vm as vm_rt


def vmobj_to_list(o: Any) -> Any:
    if isinstance(o, tvm.nd.NDArray):
        return [o.numpy().item()]
    assert isinstance(o, container.ADT)
    made = []
    for f in o:
        made.extend(vmobj_to_list(f))
    return made


def check_result(args: list[Any], expected: Any, mod: IRModule) -> None:
    for target, dev in tvm.testing.enabled_targets():
        for kind in ("debug", "vm"):
            result = relay.create_executor(kind, mod=mod, device=dev, target=target).evaluate()(*args)
            tvm.testing.assert_allclose(result.numpy(), expected)


def veval(f: Any, *args: Any, target: str = "llvm") -> Any:
    if isinstance(f, relay.Expr):
        mod = IRModule()
        mod["main"] = f
    else:
        mod = f
    exe = relay.vm.compile(mod, target)
    vm = vm_rt.VirtualMachine(exe, tvm.cpu())
    return vm.invoke("main", *args)


def test_prelude_lists() -> None:
    """Lists of the standard library, on both executors that know data types."""
    mod = IRModule()
    p = Prelude(mod)
    rlist, cons, nil = p.mod.get_type("List")
    x = relay.var("x", "int32")
    add_five = relay.Function([x], x + relay.const(5))
    numbers = cons(relay.const(2), cons(relay.const(1), nil()))
    mod["main"] = relay.Function([], p.map(add_five, numbers))
    result = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()()
    assert vmobj_to_list(result) == [7, 6]
    assert rlist.name_hint == "List"
    debug = relay.create_executor("debug", mod=mod, device=tvm.cpu(), target="llvm").evaluate()()
    assert debug.fields[0].numpy() == 7


def test_prelude_functions_by_name() -> None:
    """``mod.get_global_var`` of each function of the standard library that TVM's tests name."""
    mod = IRModule()
    p = Prelude(mod)
    for name in (
        "hd",
        "tl",
        "nth",
        "update",
        "map",
        "foldl",
        "foldr",
        "foldr1",
        "concat",
        "filter",
        "zip",
        "rev",
        "map_accuml",
        "map_accumr",
        "unfoldl",
        "unfoldr",
        "sum",
        "id",
        "compose",
        "iterate",
        "size",
        "tmap",
    ):
        assert mod.get_global_var(name).name_hint == name
    assert p is not None
    for data in ("List", "Option", "Tree"):
        assert mod.get_global_type_var(data).name_hint == data


def test_match_and_adt() -> None:
    """A type of one's own; match with constructors, tuples and wildcards."""
    mod = IRModule()
    box = relay.GlobalTypeVar("box")
    tv = relay.TypeVar("tv")
    constructor = relay.Constructor("constructor", [tv], box)
    mod[box] = relay.TypeData(box, [tv], [constructor])
    v = relay.Var("v")
    match = relay.Match(
        constructor(relay.const(3)),
        [relay.Clause(relay.PatternConstructor(constructor, [relay.PatternVar(v)]), v + relay.const(1))],
    )
    mod["main"] = relay.Function([], match)
    check_result([], 4, mod)


def test_cond_loop_and_recursion_in_vm() -> None:
    """Conditionals, recursion by ScopeBuilder, lists built and taken apart."""
    x, y = relay.var("x", shape=(10, 10)), relay.var("y", shape=(10, 10))
    cond = relay.op.equal(x, y)
    cond = relay.op.min(cond, axis=[0, 1])
    f = relay.Function([x, y], relay.If(cond, x, y))
    mod = IRModule()
    mod["main"] = f
    xd, yd = np.random.rand(10, 10).astype("float32"), np.random.rand(10, 10).astype("float32")
    check_result([xd, yd], yd, mod)
    check_result([xd, xd], xd, mod)
    mod = IRModule({})
    sum_up = relay.GlobalVar("sum_up")
    i, accum = relay.var("i", shape=[], dtype="int32"), relay.var("accum", shape=[], dtype="int32")
    sb = ScopeBuilder()
    with sb.if_scope(relay.equal(i, relay.const(0, "int32"))):
        sb.ret(accum)
    with sb.else_scope():
        one_less = relay.subtract(i, relay.const(1, "int32"))
        new_accum = relay.add(accum, i)
        sb.ret(relay.Call(sum_up, [one_less, new_accum]))
    mod[sum_up] = relay.Function([i, accum], sb.get(), ret_type=relay.TensorType([], "int32"))
    mod = relay.transform.InferType()(mod)
    iarg, aarg = relay.var("i", shape=[], dtype="int32"), relay.var("accum", shape=[], dtype="int32")
    mod["main"] = relay.Function([iarg, aarg], sum_up(iarg, aarg))
    check_result([np.int32(10), np.int32(0)], 55, mod)


def test_scope_builder_with_types() -> None:
    """A name with a type is a typed variable."""
    sb = ScopeBuilder()
    x = relay.var("x", "float32")
    t1 = sb.let("t1", relay.log(x))
    t2 = sb.let(("t2", relay.TensorType((), "float32")), relay.add(t1, x))
    sb.ret(t2)
    assert t2.type_annotation == relay.TensorType((), "float32")
    f = relay.Function([x], sb.get())
    assert tvm.ir.structural_equal(f.body.var, t1, map_free_vars=True)
    assert run_infer_type(f).ret_type == relay.TensorType(())


def test_vm_closures_tuples_and_any() -> None:
    """Closures, tuples, lets, and shapes known only at run time."""
    mod = IRModule()
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    ff = relay.Function([x], relay.Function([y], x + y))
    clo = ff(relay.const(1.0))
    mod["main"] = relay.Function([], clo(relay.const(2.0)))
    assert veval(mod).numpy() == 3.0
    tup = relay.var("t", type_annotation=relay.TupleType([relay.TensorType((1,)), relay.TensorType((10,))]))
    got = veval(
        relay.Function([tup], relay.TupleGetItem(tup, 1)), (np.zeros(1, "float32"), np.ones(10, "float32"))
    )
    assert got.numpy().tolist() == [1.0] * 10
    x = relay.var("x", shape=(relay.Any(), 2))
    mod = IRModule.from_expr(relay.Function([x], relay.concatenate([x, x], 0)))
    for rows in (1, 4):
        data = np.random.rand(rows, 2).astype("float32")
        for kind in ("debug", "vm"):
            got = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()(data)
            np.testing.assert_allclose(got.numpy(), np.concatenate([data, data]))


def check_any(
    expr: Any, inputs: list[Any], values: list[Any], expected: Any, shape_only: bool = False
) -> None:
    mod = IRModule()
    mod["main"] = relay.Function(inputs, expr)
    for kind in ("debug", "vm"):
        result = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()(*values)
        if shape_only:
            assert tuple(result.numpy().shape) == expected
        else:
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


def any_dims(ndim: int) -> tuple[Any, ...]:
    return tuple(relay.Any() for _ in range(ndim))


def test_any_elementwise_and_shapes() -> None:
    """A sample of TVM's tests of unknown dimensions."""
    d = np.random.rand(3, 4).astype("float32")
    x = relay.var("x", shape=any_dims(2))
    check_any(relay.exp(x), [x], [d], np.exp(d))
    check_any(relay.full_like(x, relay.const(2.0)), [x], [d], np.full_like(d, 2.0))
    check_any(relay.reshape(x, (1, -1)), [x], [d], d.reshape(1, -1))
    check_any(relay.transpose(x), [x], [d], d.T)
    check_any(relay.sum(x, axis=0), [x], [d], d.sum(0))
    check_any(relay.argmax(x, axis=1), [x], [d], d.argmax(1))
    check_any(relay.nn.softmax(x), [x], [d], np.exp(d) / np.exp(d).sum(1, keepdims=True))
    check_any(relay.shape_of(x), [x], [d], [3, 4])
    check_any(relay.expand_dims(x, axis=0), [x], [d], d[None])
    check_any(relay.tile(x, (2, 1)), [x], [d], np.tile(d, (2, 1)))
    check_any(relay.strided_slice(x, begin=[0, 1], end=[2, 3]), [x], [d], d[0:2, 1:3])
    check_any(relay.split(x, 2, axis=1)[1], [x], [d], d[:, 2:])
    y = relay.var("y", shape=(relay.Any(), 1))
    check_any(x * y, [x, y], [d, d[:, :1]], d * d[:, :1])
    i = relay.var("i", shape=(relay.Any(),), dtype="int32")
    check_any(relay.take(x, i, axis=0), [x, i], [d, np.array([2, 0], "int32")], d[[2, 0]])
    w = relay.var("w", shape=(5, 4))
    wd = np.random.rand(5, 4).astype("float32")
    check_any(relay.nn.dense(x, w, units=5), [x, w], [d, wd], d @ wd.T)
    c = relay.var("c", shape=any_dims(1), dtype="bool")
    flags = np.array([True, False, True])
    check_any(relay.argwhere(c), [c], [flags], np.argwhere(flags))
    shape = relay.var("s", shape=(2,), dtype="int64")
    v = relay.var("v", shape=(relay.Any(),))
    check_any(
        relay.reshape(v, shape), [v, shape], [d.reshape(-1), np.array([2, 6], "int64")], d.reshape(2, 6)
    )
    check_any(relay.ones_like(x), [x], [d], np.ones_like(d))
    stop = relay.var("stop", shape=(), dtype="int32")
    check_any(relay.arange(stop, dtype="int32"), [stop], [np.int32(5)], np.arange(5))
    check_any(relay.topk(x, k=2, ret_type="indices", dtype="int32"), [x], [d], np.argsort(-d, 1)[:, :2])


def test_any_while_concatenate() -> None:
    """A loop whose variable grows in each round."""

    def _cond(i: Any, st: Any) -> Any:
        return relay.op.min(relay.op.less(i, relay.const(10, "int32")))

    def _body(i: Any, st: Any) -> Any:
        i_vec = relay.op.reshape(i, (1, 1))
        return i + relay.const(1, "int32"), relay.op.concatenate([st, i_vec], axis=0)

    i = relay.var("i", shape=(), dtype="int32")
    st = relay.var("st", shape=(relay.Any(), 1), dtype="int32")
    loop = relay.loops.while_loop(_cond, [i, st], _body)
    start = relay.var("start", shape=(), dtype="int32")
    body = loop(start, relay.op.reshape(relay.const(0), newshape=(1, 1)))
    func = relay.Function([start], relay.TupleGetItem(body, 1))
    mod = IRModule()
    mod["main"] = func
    for kind in ("debug", "vm"):
        got = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()(
            np.array(0, "int32")
        )
        assert got.numpy().reshape(-1).tolist() == [0, *range(10)]
