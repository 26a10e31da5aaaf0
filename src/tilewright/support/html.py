"""HTML for notebooks: programs with highlighted text, tables and facts, light and dark.

Everything that is shown is escaped: names come from models that somebody else made. There are no scripts, no links and
no files; the one style sheet only touches elements of class ``tilewright``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

MOST_LINES: Final = 400
"""A longer program is cut: a notebook keeps what it shows in its file."""
OPEN_LINES: Final = 60
"""A program of at most so many lines is open from the start."""
LONG_SIGNATURE: Final = 100
"""Parameters of a function that take more characters are folded."""
MOST_CELL: Final = 2000
"""A longer text in a table is cut."""

_LIGHT: Final = (
    "--tw-fg:#1c2430;--tw-soft:#5b6675;--tw-line:#d5dae1;--tw-bg:#f7f8fa;--tw-key:#8a2be2;--tw-name:#0b5cad;"
    "--tw-text:#0a7a3d;--tw-num:#a04000;--tw-bar:#9cc3ee"
)
_DARK: Final = (
    "--tw-fg:#e3e8ef;--tw-soft:#9aa5b4;--tw-line:#3a4350;--tw-bg:#1a1f27;--tw-key:#c792ea;--tw-name:#82b1ff;"
    "--tw-text:#7ed491;--tw-num:#f0a36b;--tw-bar:#2d5f96"
)
# The system's choice first, then that of JupyterLab and of Visual Studio Code, which may be another.
_STYLE: Final = f"""
.tilewright{{{_LIGHT};color:var(--tw-fg);font:13px/1.45 system-ui,sans-serif;max-width:72em}}
@media (prefers-color-scheme:dark){{.tilewright{{{_DARK}}}}}
[data-jp-theme-light=true] .tilewright,.vscode-light .tilewright{{{_LIGHT}}}
[data-jp-theme-light=false] .tilewright,.vscode-dark .tilewright{{{_DARK}}}
.tilewright summary{{cursor:pointer}}.tilewright b{{font-weight:600}}.tilewright .soft{{color:var(--tw-soft)}}
.tilewright pre{{background:var(--tw-bg);color:var(--tw-fg);border:1px solid var(--tw-line);border-radius:4px;
padding:8px 10px;margin:4px 0 8px;overflow:auto;max-height:40em;font:12px/1.5 ui-monospace,monospace;white-space:pre}}
.tilewright pre details{{display:inline-block;vertical-align:top}}
.tilewright i{{font-style:normal}}.tilewright .k{{color:var(--tw-key)}}.tilewright .n{{color:var(--tw-name)}}
.tilewright .s{{color:var(--tw-text)}}.tilewright .d{{color:var(--tw-num)}}.tilewright .c{{color:var(--tw-soft)}}
.tilewright table{{border-collapse:collapse;margin:4px 0 8px;background:none}}
.tilewright th,.tilewright td{{text-align:left;padding:2px 12px 2px 0;border:0;border-bottom:1px solid var(--tw-line);
vertical-align:top;color:var(--tw-fg);background:none;max-width:40em}}
.tilewright th{{color:var(--tw-soft);font-weight:500}}
.tilewright td:first-child,.tilewright td:last-child{{overflow-wrap:anywhere}}
.tilewright td.num{{font-variant-numeric:tabular-nums;white-space:nowrap}}
.tilewright .bar{{display:inline-block;height:8px;background:var(--tw-bar);margin-right:6px;border-radius:2px}}
"""

TOKEN: Final = re.compile(
    r"(?P<c>//[^\n]*|/\*.*?\*/|#(?!\[)[^\n]*)"
    r'|(?P<s>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<n>[%@][\w.]+|T\.\w+)"
    r"|(?P<k>\b(?:def|fn|let|if|else|for|in|while|match|type|return|class|with|free_var|True|False|meta)\b)"
    r"|(?P<d>(?<![\w.])-?\d[\w.+-]*)",
    re.DOTALL,
)
_FUNCTION: Final = re.compile(r"\s*(?:%\w+ = )?(?:def @[\w.]+|def \w+|fn )\s*\(")
"""How the line of a function begins, up to its parameters."""


def fragment(title: str, *parts: str, subtitle: str = "") -> str:
    """A piece of a page: a bold title with a few soft words, and parts that are HTML already."""
    soft = f' <span class="soft">{text(subtitle)}</span>' if subtitle else ""
    head = f"<div><b>{text(title)}</b>{soft}</div>"
    return f'<div class="tilewright"><style>{_STYLE}</style>{head}{"".join(parts)}</div>'


def text(value: object) -> str:
    """A value as text that is safe in HTML; what a browser would not show is written out."""
    shown = str(value)
    if len(shown) > MOST_CELL:
        shown = f"{shown[:MOST_CELL]}… ({len(shown) - MOST_CELL} more characters)"
    if not shown.isprintable():
        shown = "".join(
            one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode()
            for one in shown
        )
    return escape(shown)


def highlighted(program: str) -> str:
    """Relay text or TVMScript with its keywords, names, numbers, texts and comments marked."""
    parts, at = [], 0
    for found in TOKEN.finditer(program):
        parts.append(escape(program[at : found.start()]))
        parts.append(f'<i class="{found.lastgroup}">{escape(found[0])}</i>')
        at = found.end()
    return "".join([*parts, escape(program[at:])])


def program(source: str, title: str = "") -> str:
    """A program that can be folded. The parameters of a function with many are folded by themselves."""
    printable = "".join(
        one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode() for one in source
    )
    lines = printable.strip("\n").split("\n")
    more = len(lines) - MOST_LINES
    shown = "\n".join(_line(line) for line in lines[:MOST_LINES])
    if more > 0:
        shown += f'\n<i class="c">… and {more} more lines: print it to see all</i>'
    opened = " open" if len(lines) <= OPEN_LINES else ""
    label = f"{text(title)} " if title else ""
    count = f"{len(lines)} line{'s' if len(lines) != 1 else ''}"
    return f'<details{opened}><summary>{label}<span class="soft">{count}</span></summary><pre>{shown}</pre></details>'


def _line(line: str) -> str:
    found = _FUNCTION.match(line) if len(line) > LONG_SIGNATURE else None
    if found is None:
        return highlighted(line)
    end = _closing(line, found.end())
    if end - found.end() <= LONG_SIGNATURE:
        return highlighted(line)
    parameters = _split(line[found.end() : end])
    inner = "\n".join(highlighted(one) for one in parameters)
    folded_ones = f"<details><summary>{len(parameters)} parameters</summary>{inner}</details>"
    return highlighted(found[0]) + folded_ones + highlighted(line[end:])


def _closing(line: str, start: int) -> int:
    """The place of the bracket that closes the one before ``start``; the end of the line if there is none."""
    depth = 1
    for at in range(start, len(line)):
        depth += (line[at] in "([{") - (line[at] in ")]}")
        if depth == 0:
            return at
    return len(line)


def _split(parameters: str) -> list[str]:
    """Parameters at the commas that are in no brackets."""
    found, depth, start = [], 0, 0
    for at, one in enumerate(parameters):
        depth += (one in "([{") - (one in ")]}")
        if one == "," and depth == 0:
            found.append(parameters[start : at + 1].strip())
            start = at + 1
    return [*found, parameters[start:].strip()]


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of text."""
    head = "".join(f"<th>{text(one)}</th>" for one in columns)
    body = "".join(f"<tr>{''.join(_cell(one) for one in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Bar:
    """A cell with a bar: a share of a whole, and its text."""

    def __init__(self, share: float, shown: str) -> None:
        self.share, self.shown = min(max(share, 0.0), 1.0), shown


def _cell(value: object) -> str:
    if isinstance(value, Bar):
        width = round(80 * value.share)
        return f'<td class="num"><span class="bar" style="width:{width}px"></span>{text(value.shown)}</td>'
    number = isinstance(value, (int, float)) or (isinstance(value, str) and value[:1].isdigit())
    return f"<td{' class=num' if number else ''}>{text(value)}</td>"


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Names and values, without those that are empty."""
    body = "".join(
        f"<tr><th>{text(name)}</th>{_cell(value)}</tr>" for name, value in rows if value not in (None, "")
    )
    return f"<table><tbody>{body}</tbody></table>"


def folded(title: str, inner: str, opened: bool = False) -> str:
    """HTML that can be folded."""
    return f"<details{' open' if opened else ''}><summary>{text(title)}</summary>{inner}</details>"
