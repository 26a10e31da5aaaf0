"""A thread's context is asked for once."""

from tilewright import tir
from tilewright.tir.transform.combine_context_call import CombineContextCall


def context(name):
    return tir.call_intrin("handle", "tir.tvm_thread_context", tir.call_extern("handle", name))


def uses(*names):
    return tir.SeqStmt([tir.Evaluate(tir.call_extern("int32", "use", context(name))) for name in names])


def test_one_binding_for_all_uses(apply, nodes_of):
    """Equal calls share a variable at the top; others have their own."""
    after = apply(tir.PrimFunc([], uses("queue", "queue", "stream")), CombineContextCall())
    bound = [let.value.args[0].value for let in nodes_of(after.body, tir.LetStmt)]
    assert sorted(bound) == ["queue", "stream"]
    assert isinstance(after.body, tir.LetStmt)
    assert "tir.tvm_thread_context" not in {call.op.name for call in nodes_of(after.body, tir.Call)}


def test_parallel_loops_ask_again(apply, nodes_of):
    """Iterations may run on other threads, so the binding stands inside."""
    body = tir.For(tir.Var("i"), 0, 4, tir.ForKind.PARALLEL, uses("queue"))
    after = apply(tir.PrimFunc([], body), CombineContextCall())
    assert isinstance(after.body, tir.For) and isinstance(after.body.body, tir.LetStmt)
