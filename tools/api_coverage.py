"""How much of TVM 0.8's public interface is available: ``python tools/api_coverage.py [--trace FILE] [--missing]``.

For every name in the listing ``tests/compat/public-api.txt``: does it resolve (``tvm.x.y`` as ``tilewright.x.y``), does
it have the same parameters, and did a test call it (``pytest --api-trace FILE`` records the names). A name that is only
in the table of what is not in this version does not resolve. ``--json`` prints everything as JSON.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MemberDescriptorType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LISTING = ROOT / "tests" / "compat" / "public-api.txt"
ABSENT = object()


@dataclass(frozen=True)
class Entry:
    """One name of the listing: a class, a function, or a method or property of a class."""

    section: str
    owner: str
    name: str
    parameters: str | None
    """The text between the parentheses; None for a class."""

    @property
    def path(self) -> str:
        """The whole name, as a script of TVM's would write it."""
        return ".".join(part for part in (self.section, self.owner, self.name) if part)


def read_listing(text: str) -> Iterator[Entry]:
    """The entries of a listing: sections at the margin, names two spaces in, members of a class four."""
    section = owner = ""
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        word = line.strip()
        if not word:
            continue
        if depth == 0:
            section, owner = word, ""
        elif word.startswith("class "):
            owner = word[len("class ") :].partition("(")[0]
            yield Entry(section, "", owner, None)
        else:
            name, _, rest = word.partition("(")
            yield Entry(section, owner if depth > 2 else "", name, rest.removesuffix(")"))


def find(entry: Entry) -> Any:
    """The object of the name in Tilewright; ``ABSENT`` if there is none."""
    module = entry.section.replace("tvm", "tilewright", 1)
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        return ABSENT
    for name in filter(None, (entry.owner, entry.name)):
        if inspect.isclass(found):
            found = inspect.getattr_static(found, name, ABSENT)
        else:
            found = getattr(found, name, ABSENT)
        if found is ABSENT:
            return ABSENT
        if isinstance(found, staticmethod | classmethod):
            found = found.__func__
    return found


def _listed(parameters: str) -> list[tuple[str, Any]]:
    """Names with the text of their defaults, ``ABSENT`` where there is none."""
    try:
        arguments = ast.parse(f"lambda {parameters}: 0", mode="eval").body.args  # type: ignore[attr-defined]
    except SyntaxError:
        return [(part.strip(), ABSENT) for part in parameters.split(",")]
    names = [*arguments.posonlyargs, *arguments.args]
    defaults = [ABSENT] * (len(names) - len(arguments.defaults)) + [*arguments.defaults]
    listed = [(one.arg, value) for one, value in zip(names, defaults, strict=True)]
    listed += [("*", ABSENT)] if arguments.vararg else []
    listed += [
        (one.arg, ABSENT if value is None else value)
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return listed + ([("**", ABSENT)] if arguments.kwarg else [])


def _same_default(listed: Any, actual: Any) -> bool:
    """True if the default is the listed one, as far as its text can be read."""
    if listed is ABSENT:
        return actual is inspect.Parameter.empty
    if actual is inspect.Parameter.empty:
        return False
    try:
        wanted = ast.literal_eval(listed)
    except (ValueError, TypeError):
        return True
    return bool(_plain(wanted) == _plain(actual)) or str(actual) == str(wanted)


def _plain(value: Any) -> Any:
    return tuple(_plain(item) for item in value) if isinstance(value, list | tuple) else value


def same_parameters(entry: Entry, found: Any) -> bool:
    """True if the listed parameters are ours: names, order, defaults. More of them with defaults may follow."""
    if entry.parameters is None:
        return inspect.isclass(found)
    if isinstance(found, property | MemberDescriptorType) or not callable(found):
        return not entry.parameters
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):
        return False
    if parameters and parameters[0].name in ("self", "cls") and entry.owner:
        del parameters[0]
    marks: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    ours = [(marks.get(one.kind, one.name), one.default) for one in parameters]
    listed = _listed(entry.parameters)
    if len(ours) < len(listed):
        return False
    more = ours[len(listed) :]
    return all(
        name == wanted and (name.startswith("*") or _same_default(default, actual))
        for (wanted, default), (name, actual) in zip(listed, ours, strict=False)
    ) and all(name.startswith("*") or default is not inspect.Parameter.empty for name, default in more)


@dataclass
class Section:
    """The counts of one section."""

    names: int = 0
    resolve: int = 0
    same: int = 0
    called: int = 0


def measure(entries: list[Entry], called: set[str]) -> tuple[dict[str, Section], list[str], list[str]]:
    """Counts by section; the paths that do not resolve; those whose parameters differ."""
    sections: dict[str, Section] = {}
    missing: list[str] = []
    different: list[str] = []
    for entry in entries:
        counts = sections.setdefault(entry.section, Section())
        counts.names += 1
        found = find(entry)
        if found is ABSENT:
            missing.append(entry.path)
            continue
        counts.resolve += 1
        if not same_parameters(entry, found):
            different.append(f"{entry.path}({entry.parameters})")
            continue
        counts.same += 1
        counts.called += entry.path in called
    return sections, missing, different


def main(arguments: list[str]) -> int:
    """Print the table; see the module's text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--listing", type=Path, default=LISTING, help="another listing")
    parser.add_argument("--trace", type=Path, help="names that tests called, from pytest --api-trace")
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    parser.add_argument("--missing", action="store_true", help="also the names that are not there or differ")
    options = parser.parse_args(arguments)
    called = set(options.trace.read_text().split()) if options.trace else set()
    entries = list(read_listing(options.listing.read_text()))
    sections, missing, different = measure(entries, called)
    total = Section(
        *(
            sum(getattr(one, name) for one in sections.values())
            for name in ("names", "resolve", "same", "called")
        )
    )
    if options.json:
        content = {
            "sections": {name: vars(one) for name, one in sections.items()},
            "total": vars(total),
            "missing": missing,
            "different": different,
        }
        print(json.dumps(content, indent=1))
        return 0
    print(f"{'section':44}{'names':>7}{'resolve':>9}{'same':>7}{'called':>8}")
    for name, one in [*sections.items(), ("total", total)]:
        traced = one.called if options.trace else "-"
        print(f"{name:44}{one.names:7}{one.resolve:9}{one.same:7}{traced:>8}")
    if options.missing:
        print("\nnot there:", *missing, sep="\n  ")
        print("\nother parameters:", *different, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main(sys.argv[1:]))
