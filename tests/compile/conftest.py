"""The guarded device for tests of compiled code."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from tests.compile.guarded_target import guarded_target
from tests.runtime.device.guarded import counts, guarded

from tilewright.runtime import Device


@pytest.fixture
def device() -> Iterator[Device]:
    """A guarded device with code for it; whatever the test takes of either, it must give back."""
    guarded_target()
    made, other = guarded(0), guarded(1)
    gc.collect()
    before = [counts(made).in_use, counts(other).in_use]
    yield made
    gc.collect()
    assert [counts(made).in_use, counts(other).in_use] == before
