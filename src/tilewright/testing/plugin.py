"""A pytest plugin: ``pytest_plugins = ["tilewright.testing.plugin"]`` in a conftest.

A test that takes ``target`` or ``dev``, and does not choose targets itself, runs on every enabled target; the
decorators ``exclude_targets`` and ``known_failing_targets`` exclude some, or expect them to fail. A test that chooses
targets is skipped on those that cannot run. Fixtures of one ``parameters`` call vary together. The marks that the
decorators of ``tilewright.testing`` put on tests are registered: ``pytest -m cuda`` selects those that need CUDA.
"""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.runtime.device import Device, device
from tilewright.target.target import Target
from tilewright.testing.marks import EXCLUDED, FAILING, GROUP, enabled_targets, register_marks, target_marks

_target_to_requirement = target_marks


def pytest_configure(config: pytest.Config) -> None:
    """The marks of ``requires_cuda`` and the other decorators, for ``--strict-markers``."""
    register_marks(config)


@pytest.fixture
def dev(target: str) -> Device:
    """The first device of the target."""
    return device(Target(target).kind.name, 0)


def pytest_generate_tests(metafunc: Any) -> None:
    """Run the test for each target, and for each set of values."""
    _vary_groups(metafunc)
    if "target" in metafunc.fixturenames and not _is_given(metafunc, "target"):
        metafunc.parametrize("target", _targets(metafunc.function), scope="session")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Mark tests by their targets: what cannot run is skipped, what is known to fail may. Count the users of cached
    fixtures."""
    for item in items:
        for definitions in getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).values():
            uses = getattr(definitions[-1].func, "num_tests_use_this_fixture", None)
            if uses is not None:
                uses[0] += 1
        target = getattr(item, "callspec", None) and item.callspec.params.get("target")
        if not isinstance(target, (str, Target)):
            continue
        for mark in target_marks(target):
            item.add_marker(mark)
        if _is_named(target, getattr(item.function, FAILING, ())):
            item.add_marker(pytest.mark.xfail(reason=f"is known to fail on {target}"))


def _is_given(metafunc: Any, name: str) -> bool:
    """True if a mark or a fixture of the test's own gives this argument."""
    marked = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    given = {part.strip() for one in marked for part in (one.split(",") if isinstance(one, str) else one)}
    return name in given or name in metafunc._arg2fixturedefs


def _targets(function: Any) -> list[Any]:
    excluded = getattr(function, EXCLUDED, ())
    return [pytest.param(name, id=name) for name, _ in enabled_targets() if not _is_named(name, excluded)]


def _is_named(target: str | Target, names: Any) -> bool:
    """True if a target, or its kind, is one of these."""
    return str(target) in names or Target(target).kind.name in names


def _vary_groups(metafunc: Any) -> None:
    """Parametrize the fixtures of each ``parameters`` together."""
    groups: dict[object, list[tuple[int, str, Any, Any]]] = {}
    for name, definitions in metafunc._arg2fixturedefs.items():
        noted = getattr(definitions[-1].func, GROUP, None)
        if noted is not None and name in metafunc.fixturenames:
            group, position, column, ids = noted
            groups.setdefault(group, []).append((position, name, column, ids))
    for members in groups.values():
        members.sort(key=lambda member: member[0])
        names = [name for _, name, _, _ in members]
        values = list(zip(*[column for _, _, column, _ in members], strict=True))
        metafunc.parametrize(",".join(names), values, ids=members[0][3], indirect=True)
