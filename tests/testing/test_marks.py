"""What tests need, and the targets they run on."""

import pytest

from tilewright import testing
from tilewright.runtime.device import Device
from tilewright.support.errors import TilewrightError
from tilewright.testing import marks


def test_enabled_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU is always there; the environment may name the targets."""
    monkeypatch.delenv("TVM_TEST_TARGETS", raising=False)
    assert testing.enabled_targets()[0] == ("llvm", Device(1, 0))
    monkeypatch.setenv("TVM_TEST_TARGETS", "llvm -mcpu=generic; ")
    assert [name for name, _ in testing.enabled_targets()] == ["llvm -mcpu=generic"]
    assert testing.device_enabled("llvm") and not testing.device_enabled("nonsense")


@testing.requires_llvm
def test_requirement_that_is_met() -> None:
    """A test whose requirement is met runs."""
    assert testing.device_enabled("llvm")


def test_requirement_that_is_missing() -> None:
    """A missing package skips the test and says which."""
    mark = testing.requires_package("sys", "no_such_package_here")
    assert mark.kwargs["reason"] == "not installed: no_such_package_here" and mark.args == (True,)
    assert testing.requires_package("sys").args == (False,)


@testing.parametrize_targets("llvm")
def test_on_targets(target: str, dev: Device) -> None:
    """A test runs on each target with its device."""
    assert target == "llvm" and dev.device_type == 1


number = testing.parameter(2, 3)


CALLS: list[int] = []


@testing.fixture(cache_return_value=True)
def made_once(number: int) -> list[int]:
    """A list for each number."""
    CALLS.append(number)
    return [number]


@pytest.mark.parametrize("repeated", [1, 2])
def test_fixtures(number: int, made_once: list[int], repeated: int) -> None:
    """A parameter runs the test for each value; a cached fixture is made once for each, and no test sees what another
    did to it."""
    made_once.append(repeated)
    assert made_once == [number, repeated] and CALLS.count(number) == 1


def test_cached_values_are_forgotten() -> None:
    """After the last test that uses it, a cached fixture keeps nothing; without a count it keeps all."""
    made: list[int] = []

    def build() -> list[int]:
        made.append(1)
        return [1]

    cached = marks._cached(build)
    cached()
    cached()
    assert len(made) == 1
    cached.num_tests_use_this_fixture[0] = 2
    assert [cached(), cached(), cached()] == [[1]] * 3 and len(made) == 2


class TestOfAClass:
    """Parameters and fixtures can be those of a class."""

    count = testing.parameter(3, 5)

    @testing.fixture
    def twice(self, count: int) -> int:
        """Twice the parameter."""
        return 2 * count

    def test_values(self, count: int, twice: int) -> None:
        """The test runs for each value."""
        assert twice == 2 * count and count in (3, 5)


def test_pytest_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pytest the error names what to install."""
    monkeypatch.setattr(marks.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TilewrightError, match=r"pip install tilewright\[test\]"):
        testing.requires_gpu(lambda: None)


def test_identity_after() -> None:
    """The value comes back."""
    assert testing.identity_after(5, 0.0) == 5
