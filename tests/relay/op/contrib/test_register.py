"""Tables of patterns."""

from __future__ import annotations

from tilewright.relay.op.contrib import get_pattern_table, register_pattern_table


def test_tables_are_found_by_name() -> None:
    """A table is registered by a decorator or a call; a generator without one has None."""

    @register_pattern_table("test.decorated")
    def decorated() -> list[tuple[str, str]]:
        return [("pair", "pattern")]

    register_pattern_table("test.called", lambda: [("other", "pattern")])
    assert get_pattern_table("test.decorated") == [("pair", "pattern")]
    assert get_pattern_table("test.called") == [("other", "pattern")]
    assert get_pattern_table("test.unknown") is None
    assert decorated() == [("pair", "pattern")]
