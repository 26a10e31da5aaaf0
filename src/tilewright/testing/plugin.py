"""A pytest plugin: ``pytest_plugins = ["tilewright.testing.plugin"]`` in a conftest.

A test that takes ``target`` or ``dev``, and does not choose targets itself, runs on every enabled target; the
decorators ``exclude_targets`` and ``known_failing_targets`` exclude some, or expect them to fail. Fixtures of one
``parameters`` call vary together.
"""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.target.target import Target
from tilewright.testing.marks import EXCLUDED, FAILING, GROUP, enabled_targets


def pytest_generate_tests(metafunc: Any) -> None:
    """Run the test for each target, and for each set of values."""
    _vary_groups(metafunc)
    names = [name for name in ("target", "dev") if name in metafunc.fixturenames]
    if names and not _is_parametrized(metafunc, names):
        metafunc.parametrize(",".join(names), _targets(metafunc.function, names), scope="session")


def _is_parametrized(metafunc: Any, names: list[str]) -> bool:
    """True if a mark or a fixture of the test's own gives one of these arguments."""
    marked = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    given = {part.strip() for one in marked for part in (one.split(",") if isinstance(one, str) else one)}
    return any(name in given or name in metafunc._arg2fixturedefs for name in names)


def _targets(function: Any, names: list[str]) -> list[Any]:
    excluded, failing = getattr(function, EXCLUDED, ()), getattr(function, FAILING, ())
    made = []
    for name, device in enabled_targets():
        kind = Target(name).kind.name
        if kind in excluded or name in excluded:
            continue
        expected = pytest.mark.xfail(reason=f"is known to fail on {name}")
        values = [{"target": name, "dev": device}[argument] for argument in names]
        made.append(pytest.param(*values, id=name, marks=[expected] if {kind, name} & set(failing) else []))
    return made


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
