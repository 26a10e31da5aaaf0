"""A graph as DOT text, and what becomes of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import TilewrightError


def _attributes(given: dict[str, Any]) -> str:
    """Attributes in brackets. A label in angle brackets is HTML, and stands as it is."""
    written = [
        f"{name}={value}" if str(value).startswith("<") or str(value).isidentifier() else f'{name}="{value}"'
        for name, value in given.items()
    ]
    return f" [{' '.join(written)}]" if written else ""


class DotGraph:
    """The lines of a directed graph."""

    def __init__(self, name: str, rankdir: str) -> None:
        self.name = name
        self.lines: list[str] = [f"rankdir={rankdir}"]
        self._indent = 1

    def _line(self, text: str) -> None:
        self.lines.append("  " * (self._indent - 1) + text)

    def attr(self, **attributes: Any) -> None:
        """Attributes of the graph, or of the part that is open."""
        for name, value in attributes.items():
            self._line(f'{name}="{value}"')

    def node(self, name: str, **attributes: Any) -> None:
        """A node."""
        self._line(f"{name}{_attributes(attributes)}")

    def edge(self, tail: str, head: str, **attributes: Any) -> None:
        """An edge between nodes, or between their ports (``node:port``)."""
        self._line(f"{tail} -> {head}{_attributes(attributes)}")

    @contextmanager
    def cluster(self, name: str) -> Iterator[None]:
        """What is added meanwhile is drawn within a frame."""
        self._line(f"subgraph cluster_{name} {{")
        self._indent += 1
        yield
        self._indent -= 1
        self._line("}")

    @property
    def source(self) -> str:
        """The text."""
        body = "\n".join(f"  {line}" for line in self.lines)
        return f'digraph "{self.name}" {{\n{body}\n}}\n'


class Drawing(str):
    """SVG text that a notebook shows as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def create_graph(name: str = "", rankdir: str = "BT") -> DotGraph:
    """An empty graph that grows upwards (``BT``), or as ``rankdir`` says."""
    return DotGraph(name, rankdir)


def dump_graph(
    dot_string: str, show_svg: bool = True, dot_file_path: str = "", output_dot_string: bool = False
) -> Any:
    """Store a text, draw it, return it. The drawing is SVG text, which a notebook shows as a picture."""
    if dot_file_path:
        write_bytes(Path(dot_file_path), dot_string.encode())
    if show_svg:
        return Drawing(_draw(dot_string))
    return dot_string if output_dot_string else None


def _draw(dot_string: str) -> str:
    program = shutil.which("dot")
    if program is None:
        raise TilewrightError(
            "Graphviz draws the picture, and its program dot was not found: install Graphviz, or take the text with "
            "show_svg=False, output_dot_string=True"
        )
    done = subprocess.run([program, "-Tsvg"], input=dot_string, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TilewrightError(f"dot did not draw the picture: {done.stderr}")
    return done.stdout
