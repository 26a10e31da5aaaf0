"""The passes that can be named: options with their defaults, and what each does."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from dataclasses import dataclass

from tilewright.ir.option_types import describe, hints_of, is_data
from tilewright.ir.pass_options import default_of, options_of, value_text
from tilewright.ir.transform import Pass, qualified_name
from tilewright.relay import transform

_TITLES = {"relay": "on graphs (Relay)", "tir": "on loops (TIR)"}


@dataclass(frozen=True)
class PassDescription:
    """A pass as a user sees it. ``options`` has the default of each as text, None where it must be given."""

    name: str
    level: str
    opt_level: int
    summary: str
    options: dict[str, str | None]


def describe_passes() -> list[PassDescription]:
    """Every pass of the compiler, by level and name."""
    package = transform.__name__.partition(".")[0]
    own = [kind for kind in Pass.registry.values() if kind.__module__.startswith(f"{package}.")]
    made = [_description(kind) for kind in own]
    return sorted(made, key=lambda one: (one.level, one.name.lower()))


def _description(kind: type[Pass]) -> PassDescription:
    options: dict[str, str | None] = {}
    for option in options_of(kind):
        default = default_of(option)
        if default is dataclasses.MISSING:
            hint = hints_of(kind)[option.name]
            options[option.name] = None if is_data(hint) else f"<{describe(hint).removeprefix('a ')}>"
        else:
            options[option.name] = value_text(default)
    return PassDescription(
        kind.name, qualified_name(kind.name).partition(".")[0], kind.opt_level, _summary(kind), options
    )


def _summary(kind: type[Pass]) -> str:
    """The first sentence of what is said about a pass."""
    text = re.sub(r"\s+", " ", kind.__doc__ or "").replace("``", "'").strip()
    return re.split(r"(?<=[.:;]) (?=[A-Z'])|: ", text)[0].rstrip(".:; ") + "."


def pass_list(width: int = 80) -> str:
    """The passes as text: a line for the name and the options with their defaults, and one for what it does."""
    lines: list[str] = []
    level = ""
    for one in describe_passes():
        if one.level != level:
            level = one.level
            lines += ["", f"Passes {_TITLES[level]}", ""] if lines else [f"Passes {_TITLES[level]}", ""]
        written = [name if default is None else f"{name}={default}" for name, default in one.options.items()]
        head = f"{one.name}{{{', '.join(written)}}}" if written else one.name
        lines += textwrap.wrap(head, width - 2, initial_indent="  ", subsequent_indent=" " * 8)
        lines += textwrap.wrap(one.summary, width - 2, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines) + "\n"
