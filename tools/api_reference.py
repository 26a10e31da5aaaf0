"""The API reference, generated from docstrings: ``python tools/api_reference.py [-o FOLDER]``.

Writes HTML that works offline: ``index.html`` with a search over all names, a page per namespace with the signature and
the text of every public name, and the sources with numbered lines, to which each name links. A name that several
namespaces have is documented in one of them, and the others link there.
"""

from __future__ import annotations

import argparse
import functools
import html
import json
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")] if __name__ == "__main__" else []

from api_names import PACKAGE, Name, Namespace, namespaces  # noqa: E402 - the path comes first

STYLE = Path(__file__).with_suffix(".css")

SEARCH = """
const names = JSON.parse(document.getElementById("names").textContent);
const box = document.querySelector("input"), list = document.getElementById("found");
const search = () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const found = words.length ? names.filter(([path]) => words.every(word => path.toLowerCase().includes(word))) : [];
  const last = path => path.split(".").pop().toLowerCase();
  const rank = ([path]) => last(path) === words.at(-1) ? 0 : last(path).startsWith(words.at(-1)) ? 1 : 2;
  const whole = ([path]) => words.filter(word => path.toLowerCase().split(".").includes(word)).length;
  found.sort((a, b) => rank(a) - rank(b) || whole(b) - whole(a) || a[0].length - b[0].length);
  list.replaceChildren(...found.slice(0, 100).map(([path, link, text]) => {
    const row = document.createElement("tr"), left = row.insertCell(), right = row.insertCell();
    const anchor = document.createElement("a");
    anchor.href = link; anchor.textContent = path;
    left.append(anchor); right.textContent = text;
    return row;
  }));
  document.getElementById("all").hidden = words.length > 0;
};
box.addEventListener("input", search);
box.value = new URLSearchParams(location.search).get("q") ?? "";
search();
document.documentElement.dataset.ready = "true";
"""


def page_of(namespace: str) -> str:
    """The file of a namespace's page."""
    return f"{namespace}.html"


def source_of(module: str) -> tuple[str, Path] | None:
    """The page of a module's source, and the source; None for what is not in the package."""
    parts = module.split(".")[1:]
    for path in (PACKAGE.joinpath(*parts).with_suffix(".py"), PACKAGE.joinpath(*parts, "__init__.py")):
        if path.is_file():
            return (
                f"source/{path.relative_to(PACKAGE).with_suffix('').as_posix().replace('/', '.')}.html",
                path,
            )
    return None


@functools.cache
def homes() -> dict[int, Name]:
    """By the identity of what a name stands for: the one place where it is told.

    That is the namespace nearest to the module that defines it; of several names there, the object's own.
    """

    def distance(name: Name) -> tuple[bool, int, bool]:
        inside = f"{name.home}.".startswith(f"{name.namespace}.")
        own = getattr(name.value, "__name__", name.name) == name.name
        return (not inside, -len(name.namespace) if inside else len(name.namespace), not own)

    found: dict[int, Name] = {}
    for namespace in namespaces():
        for name in namespace.names:
            known = found.get(id(name.value))
            if name.kind != "data" and (known is None or distance(name) < distance(known)):
                found[id(name.value)] = name
    return found


@functools.cache
def links() -> dict[str, str]:
    """Where each public name, member and namespace is told, by its path."""
    found = {namespace.path: page_of(namespace.path) for namespace in namespaces()}
    for namespace in namespaces():
        for name in namespace.names:
            home = homes().get(id(name.value), name) if name.kind != "data" else name
            found[name.path] = f"{page_of(home.namespace)}#{home.name}"
            for member in name.members:
                found[f"{name.path}.{member.name}"] = f"{page_of(home.namespace)}#{home.name}.{member.name}"
            # The module that defines it is another way to say it.
            found.setdefault(f"{name.home}.{name.name}", found[name.path])
    return found


def _code(text: str, namespace: str) -> str:
    """Text between two backquotes, with a link where it is a public name."""
    plain = re.sub(r"\(.*\)$", "", text)
    for path in (f"{namespace}.{plain}", f"tilewright.{plain}", plain.replace("tvm.", "tilewright.", 1)):
        if path in links():
            return f'<a href="{links()[path]}"><code>{html.escape(text)}</code></a>'
    return f"<code>{html.escape(text)}</code>"


def _inline(text: str, namespace: str) -> str:
    parts = re.split(r"``(.+?)``", text, flags=re.DOTALL)
    return "".join(
        _code(part, namespace) if number % 2 else html.escape(part) for number, part in enumerate(parts)
    )


def text_of(docstring: str, namespace: str) -> str:
    """A docstring as HTML: paragraphs, lists of ``-``, and indented blocks and tables as they are."""
    made = []
    for block in re.split(r"\n\s*\n", docstring.strip("\n")):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines) or lines[0].startswith(("|", "+-", "===")):
            made.append(f"<pre>{html.escape(block)}</pre>")
        elif lines[0].lstrip().startswith("- "):
            items = re.split(r"^\s*- ", block, flags=re.MULTILINE)[1:]
            made.append("<ul>" + "".join(f"<li>{_inline(item, namespace)}</li>" for item in items) + "</ul>")
        else:
            made.append(f"<p>{_inline(block.removesuffix('::'), namespace)}</p>")
    return "\n".join(made)


def _first_line(text: str) -> str:
    return re.split(r"(?<=\.)\s|:?\n\s*\n", text.strip(), maxsplit=1)[0].replace("``", "").replace("\n", " ")


def _signature(name: str, kind: str, signature: str, source: str) -> str:
    shown = "" if kind == "function" else f'<span class="kind">{kind}</span> '
    return f'<div class="signature">{source}{shown}<b>{html.escape(name)}</b>{html.escape(signature)}</div>'


def _source_link(module: str, line: int) -> str:
    source = source_of(module)
    return f'<a class="source" href="{source[0]}#L{line}">source</a>' if source else ""


def _class_details(name: Name) -> str:
    """Bases, members, and what comes from above."""
    made = []
    bases = [base for base in name.bases if base in links()]
    if bases:
        shown = ", ".join(f'<a href="{links()[base]}">{base.rpartition(".")[2]}</a>' for base in bases)
        made.append(f'<p class="text quiet">Base: {shown}.</p>')
    for member in name.members:
        link = _source_link(member.home, member.line)
        made.append(
            f'<div class="member" id="{name.name}.{member.name}">'
            f"{_signature(member.name, member.kind, member.signature, link)}"
            f'<div class="text">{text_of(member.text, name.namespace)}</div></div>'
        )
    for base, members in name.inherited:
        title = base.rpartition(".")[2]
        if base in links():
            title = f'<a href="{links()[base]}">{title}</a>'
        made.append(f'<p class="text quiet">From {title}: {", ".join(members)}.</p>')
    return "\n".join(made)


def entry(name: Name) -> str:
    """A public name: told here, or the place where it is."""
    home = homes().get(id(name.value), name) if name.kind != "data" else name
    if home.path != name.path:
        place = f'<a href="{links()[home.path]}"><code>{home.path}</code></a>'
        told = f"{html.escape(_first_line(name.text))} See {place}."
        head = _signature(name.name, name.kind, "", "")
        return f'<div class="entry" id="{name.name}">{head}<div class="text">{told}</div></div>'
    link = _source_link(name.home, name.line)
    return (
        f'<div class="entry" id="{name.name}">{_signature(name.name, name.kind, name.signature, link)}'
        f'<div class="text">{text_of(name.text, name.namespace)}</div>{_class_details(name)}</div>'
    )


def _page(title: str, body: str, here: str = "", above: str = "") -> str:
    listed = "".join(
        f'<li{" class=here" if one.path == here else ""}><a href="{above}{page_of(one.path)}">'
        f"{one.path.removeprefix('tilewright.')}</a></li>"
        for one in namespaces()
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{above}style.css"></head><body><div class="layout">'
        f'<nav><a href="{above}index.html"><b>Tilewright</b></a><ul>{listed}</ul></nav>'
        f"<main>{body}</main></div></body></html>\n"
    )


def namespace_page(namespace: Namespace) -> str:
    """The page of a namespace: its text, a table of its names, then each of them."""
    groups = (("Classes", "class"), ("Functions", "function"), ("Data", "data"))
    made = [f"<h1>{namespace.path}</h1>", text_of(namespace.text, namespace.path)]
    for title, kind in groups:
        names = sorted((one for one in namespace.names if one.kind == kind), key=lambda one: one.name.lower())
        if not names:
            continue
        rows = "".join(
            f'<tr><td><a href="#{one.name}"><code>{one.name}</code></a></td>'
            f"<td>{html.escape(_first_line(one.text))}</td></tr>"
            for one in names
        )
        made += [f"<h2>{title}</h2>", f"<table>{rows}</table>", *map(entry, names)]
    return _page(namespace.path, "\n".join(made), namespace.path)


def index_page() -> str:
    """The list of namespaces, and a search over everything."""
    known = []
    for namespace in namespaces():
        for name in namespace.names:
            known.append((name.path, links()[name.path], _first_line(name.text)))
            if homes().get(id(name.value)) is name:
                known += [
                    (f"{name.path}.{one.name}", links()[f"{name.path}.{one.name}"], _first_line(one.text))
                    for one in name.members
                ]
    rows = "".join(
        f'<tr><td><a href="{page_of(one.path)}">{one.path}</a></td>'
        f"<td>{html.escape(_first_line(one.text))}</td><td>{len(one.names)}&nbsp;names</td></tr>"
        for one in namespaces()
    )
    # Data inside a script element must not end it.
    data = json.dumps(known).replace("</", "<\\/")
    body = (
        "<h1>The reference of Tilewright</h1>"
        '<input type="search" placeholder="Search names: te compute" autofocus>'
        f'<table id="found"></table><table id="all">{rows}</table>'
        f'<script type="application/json" id="names">{data}</script><script>{SEARCH}</script>'
    )
    return _page("Tilewright: reference", body)


def source_page(title: str, text: str) -> str:
    """A source with numbered lines."""
    lines = "".join(
        f'<span id="L{number}">{html.escape(line)}</span>' for number, line in enumerate(text.split("\n"), 1)
    )
    return _page(title, f'<h1>{title}</h1><div class="listing">{lines}</div>', above="../")


def _sources() -> Iterable[tuple[str, Path]]:
    names = [name for namespace in namespaces() for name in namespace.names]
    modules = {name.home for name in names} | {one.home for name in names for one in name.members}
    found = {made for module in modules if (made := source_of(module)) is not None}
    return sorted(found)


def write(folder: Path) -> int:
    """Write everything into the folder; the number of pages."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "source").mkdir(parents=True)
    shutil.copy(STYLE, folder / "style.css")
    (folder / "index.html").write_text(index_page(), encoding="utf-8")
    for namespace in namespaces():
        (folder / page_of(namespace.path)).write_text(namespace_page(namespace), encoding="utf-8")
    sources = list(_sources())
    for page, path in sources:
        title = path.relative_to(PACKAGE.parent).as_posix()
        (folder / page).write_text(source_page(title, path.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 + len(namespaces()) + len(sources)


def main(arguments: list[str]) -> int:
    """Write the reference; see the module's text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "reference", help="the folder")
    options = parser.parse_args(arguments)
    if (
        options.output.exists()
        and not (options.output / "style.css").exists()
        and any(options.output.iterdir())
    ):
        parser.error(
            f"{options.output} contains something else; give an empty folder or an earlier reference"
        )
    pages = write(options.output)
    print(f"{pages} pages; open {options.output / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
