"""Slots: filled once, and an error before."""

import pytest

from tilewright.support.errors import InternalError
from tilewright.support.slot import Slot


def test_filled_once() -> None:
    """The value that was given stays; giving it again is harmless, giving another one is an error."""
    slot: Slot[str] = Slot("a word")
    slot.fill(word := "word")
    slot.fill(word)
    assert slot.value == "word" and repr(slot) == "Slot(a word, filled)"
    with pytest.raises(InternalError, match="the slot for a word is filled already"):
        slot.fill("other")


def test_empty() -> None:
    """Asking for what nobody gave names the purpose."""
    slot: Slot[int] = Slot("a number")
    with pytest.raises(InternalError, match="the slot for a number is used before"):
        slot.value
    assert repr(slot) == "Slot(a number, empty)"
