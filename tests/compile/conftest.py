"""The guarded device for tests of compiled code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compile.guarded_target import guarded_target
from tests.runtime.device.guarded import balanced

from tilewright.runtime import Device


@pytest.fixture
def device() -> Iterator[Device]:
    """A guarded device with code for it; whatever the test takes of either, it must give back."""
    guarded_target()
    with balanced() as made:
        yield made
