"""Tags."""

from tilewright.topi import tag


def test_kinds():
    """Element-wise is a kind of broadcast, and both are injective; more may follow a comma."""
    assert (
        tag.is_broadcast("elemwise") and tag.is_broadcast("broadcast") and not tag.is_broadcast("injective")
    )
    assert tag.is_injective("injective,pad") and tag.is_injective("broadcast")
    assert not tag.is_injective("comm_reduce") and not tag.is_injective("")
