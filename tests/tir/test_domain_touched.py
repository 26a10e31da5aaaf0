"""What a statement touches of a buffer."""

from tilewright import te, tir
from tilewright.tir.analysis import domain_touched


def test_loads_and_stores() -> None:
    """Loads, stores and both have their own ranges; a buffer that is not accessed has none."""
    i, m = tir.Var("i"), te.size_var("m")
    a, b = tir.decl_buffer((8, m), name="a"), tir.decl_buffer((8, m), name="b")
    tx = te.thread_axis("threadIdx.x")
    store = tir.BufferStore(a, a[i - 1, tx.var] + b[i, 0], [i, tx.var])
    stmt = tir.For(i, 0, 8, 0, tir.AttrStmt(tx, "thread_extent", m, store))

    def ranges(*given):
        return [(str(one.min), str(one.extent)) for one in domain_touched(stmt, *given)]

    assert ranges(a, True, False) == [("-1", "8"), ("0", "m")]
    assert ranges(a, False, True) == [("0", "8"), ("0", "m")]
    assert ranges(a, True, True) == [("-1", "9"), ("0", "m")]
    assert ranges(b, True, True) == [("0", "8"), ("0", "1")]
    assert ranges(b, False, True) == []
