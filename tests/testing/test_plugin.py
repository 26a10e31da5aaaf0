"""Tests that name no target run on all, and values vary together."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

# What a run inside this process imports is forgotten after it; NumPy cannot be imported twice.
pytest.importorskip("numpy")

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


def test_marks_are_registered(pytester: pytest.Pytester) -> None:
    """Those of the decorators can be selected under ``--strict-markers``; a test that needs what is not there is
    skipped."""
    pytester.makepyfile(
        """
        from tilewright import testing

        @testing.requires_llvm
        def test_with_llvm():
            pass

        @testing.requires_ethosn
        def test_elsewhere():
            raise AssertionError

        @testing.uses_gpu
        def test_with_a_gpu_or_without():
            pass
        """
    )
    plugin = ("-p", "tilewright.testing.plugin", "--strict-markers")
    pytester.runpytest_inprocess(*plugin).assert_outcomes(passed=2, skipped=1)
    pytester.runpytest_inprocess(*plugin, "-m", "llvm").assert_outcomes(passed=1, deselected=2)
    pytester.runpytest_inprocess(*plugin, "-m", "gpu").assert_outcomes(passed=1, deselected=2)


CHOSEN = """
import pytest
from tilewright import testing

class Opaque:
    pass

@testing.parametrize_targets("llvm", "vulkan")
def test_without_a_device(target):
    assert target == "llvm"

@pytest.mark.parametrize("target", ["llvm", "metal"])
def test_with_a_device(target, dev):
    assert target == "llvm" and dev.device_type == 1

@testing.known_failing_targets("llvm")
@testing.parametrize_targets("llvm")
def test_fails(target):
    raise AssertionError(target)

class TestCache:
    size = testing.parameter(1, 2)
    other = testing.parameter("a", "b")
    calls = 0

    @testing.fixture(cache_return_value=True)
    def twice(self, size):
        type(self).calls += 1
        return {"value": 2 * size}

    @testing.fixture(cache_return_value=True)
    def opaque(self):
        return Opaque()

    def test_copies(self, size, other, twice):
        assert twice.pop("value") == 2 * size

    def test_made_once(self):
        assert self.calls == 2

    def test_shared(self, request):
        with pytest.raises(TypeError, match="how it is copied"):
            request.getfixturevalue("opaque")
"""


def test_chosen_targets_and_cached_fixtures(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that chooses targets is skipped on those that cannot run; a cached value is made once and copied."""
    monkeypatch.setenv("TVM_TEST_TARGETS", "llvm")
    pytester.makepyfile(CHOSEN)
    ran = pytester.runpytest_inprocess("-p", "tilewright.testing.plugin", "-q")
    ran.assert_outcomes(passed=8, skipped=2, xfailed=1)
