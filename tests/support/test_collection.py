"""Fewer searches for garbage."""

import gc

import pytest

from tilewright.support.collection import THRESHOLDS, rare_collection, with_rare_collection


@pytest.fixture(autouse=True)
def thresholds():
    """Those of a program, and its own again after the test."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 100)
    yield
    gc.set_threshold(*before)


def test_thresholds_are_raised_and_restored():
    """Blocks nest; what the program had set higher stays, and the outermost block restores everything."""
    with rare_collection():
        with rare_collection():
            assert gc.get_threshold() == (THRESHOLDS[0], THRESHOLDS[1], 100)
        assert gc.get_threshold()[0] == THRESHOLDS[0]
    assert gc.get_threshold() == (700, 10, 100)


def test_a_program_without_searches_gets_none():
    """A threshold of zero means that nothing is searched."""
    gc.set_threshold(0)
    with rare_collection():
        assert gc.get_threshold()[0] == 0


def test_decorator():
    """A decorated function runs inside the block and keeps its name."""

    def first_threshold():
        return gc.get_threshold()[0]

    assert with_rare_collection(first_threshold)() == THRESHOLDS[0]
    assert with_rare_collection(first_threshold).__name__ == "first_threshold"
