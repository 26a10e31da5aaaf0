"""Tests that name no target run on all, and values vary together."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest
from tilewright import testing

size, name = testing.parameters((1, "a"), (2, "b"))
other = testing.parameter(by_dict={"first": 1, "second": 2})

def test_everywhere(target, dev):
    assert target == "llvm" and dev.device_type == 1

@testing.exclude_targets("llvm")
def test_nowhere(target, dev):
    raise AssertionError(target)

@testing.known_failing_targets("llvm")
def test_fails(target):
    raise AssertionError(target)

@testing.parametrize_targets("llvm")
def test_own(target, dev):
    assert target == "llvm"

def test_together(size, name):
    assert (size, name) in ((1, "a"), (2, "b"))

def test_named(other):
    assert other in (1, 2)

class TestOfAClass:
    low, high = testing.parameters((1, 2), (3, 4))

    def test_together(self, low, high):
        assert high == low + 1
"""


def test_the_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these tests runs as often as its targets and values say."""
    monkeypatch.setenv("TVM_TEST_TARGETS", "llvm")
    pytester.makepyfile(TESTS)
    ran = pytester.runpytest_inprocess("-p", "tilewright.testing.plugin", "-v")
    ran.assert_outcomes(passed=8, xfailed=1, skipped=1)
    ran.stdout.fnmatch_lines(["*test_named[[]second[]]*"])
