"""Random programs partitioned by random tables of patterns run as before."""

from __future__ import annotations

from tests.relay import partition_fuzz


def test_partitioned_programs_run_as_before() -> None:
    """Sixty in the interpreter, and a few compiled; parts are taken out of most."""
    partition_fuzz.prepare()
    found = [partition_fuzz.check(seed, seed % 12 == 0) for seed in range(60)]
    assert [text for _, texts in found for text in texts] == []
    assert sum(parts > 0 for parts, _ in found) > 30
