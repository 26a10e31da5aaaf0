"""The reference of the public interface: every public name is in it, and every link in it leads somewhere."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest
from tests.driver.profile.browser import Page, find_browser

import api_names
import api_reference
import tilewright


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, written once."""
    folder = tmp_path_factory.mktemp("reference")
    assert api_reference.main(["-o", str(folder)]) == 0
    return folder


def listed(module: ModuleType) -> list[str]:
    """What a package offers: its ``__all__``, or all of Tilewright's own that it has without an underscore."""
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    values = {name: getattr(module, name) for name in names}
    return [
        name
        for name, value in values.items()
        if not isinstance(value, ModuleType)
        and (hasattr(module, "__all__") or str(getattr(value, "__module__", "")).startswith("tilewright"))
    ]


def test_every_public_name_is_on_its_page(reference: Path) -> None:
    """What a package's ``__all__`` says, or what it has where there is none, has an entry on its page."""
    packages = ["tilewright"]
    packages += [
        found.name
        for found in pkgutil.walk_packages(tilewright.__path__, "tilewright.")
        if found.ispkg and "._" not in found.name
    ]
    count = 0
    for package in packages:
        names = listed(importlib.import_module(package))
        if names and package.removeprefix("tilewright.") not in api_names.INNER:
            page = (reference / api_reference.page_of(package)).read_text(encoding="utf-8")
            assert [name for name in names if f'id="{name}"' not in page] == [], package
            count += len(names)
    assert count > 1500


def test_no_public_name_is_without_text() -> None:
    """Every namespace, class, function, method and property says what holds."""
    assert api_names.without_text() == []


def test_a_name_without_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check sees a missing docstring of a function and of a method."""
    from tilewright import te

    monkeypatch.setattr(te.placeholder, "__doc__", None)
    monkeypatch.setattr(te.Schedule.cache_read, "__doc__", None)
    api_names.namespaces.cache_clear()
    try:
        lacking = api_names.without_text()
    finally:
        api_names.namespaces.cache_clear()
    assert "tilewright.te.placeholder" in lacking and "tilewright.te.Schedule.cache_read" in lacking


def test_links_lead_somewhere(reference: Path) -> None:
    """Every link has a page of the reference at its end, and the place on it that it names."""
    pages = {page: page.read_text() for page in reference.rglob("*.html")}
    places = {page: set(re.findall(r'id="([^"]+)"', text)) for page, text in pages.items()}
    checked = set()
    for page, text in pages.items():
        for link in set(re.findall(r'href="([^"]+)"', text)):
            name, _, place = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            checked.add((page, link))
            assert target.exists(), (page.name, link)
            assert not place or place in places[target], (page.name, link)
    assert len(checked) > 5000


def test_signature_text_and_source(reference: Path) -> None:
    """An entry has the parameters with types and defaults, the docstring, and a link to the line that defines it."""
    from tilewright import te

    page = (reference / "tilewright.te.html").read_text()
    entry = page[page.index('<div class="entry" id="placeholder">') :].partition('<div class="entry"')[2]
    entry = entry.partition('<div class="entry"')[0]
    assert "name: str = &#x27;placeholder&#x27;" in entry
    assert (te.placeholder.__doc__ or "").partition("``")[0].partition("\n")[0] in entry
    line = inspect.getsourcelines(te.placeholder)[1]
    assert f'href="source/te.operation.html#L{line}"' in entry


def test_one_place_for_each_object() -> None:
    """``te.exp`` is told where it is defined, under ``tir``; ``tvm.IRModule`` under ``ir``."""
    links = api_reference.links()
    assert links["tilewright.te.exp"] == links["tilewright.tir.exp"] == "tilewright.tir.html#exp"
    assert links["tilewright.IRModule"] == "tilewright.ir.html#IRModule"
    assert links["tilewright.te.Schedule.cache_read"] == "tilewright.te.schedule.html#Schedule.cache_read"


def test_text() -> None:
    """Paragraphs, code with links to what it names, lists, and indented blocks as they are."""
    made = api_reference.text_of(
        "See ``te.compute``, ``a < b``.\n\n    x = 1\n\n- one\n- ``two``", "tilewright.te"
    )
    assert '<p>See <a href="tilewright.te.html#compute"><code>te.compute</code></a>, ' in made
    assert "<code>a &lt; b</code>.</p>" in made
    assert "<pre>    x = 1</pre>" in made
    assert "<ul><li>one\n</li><li><code>two</code></li></ul>" in made


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    """A folder that holds something else is refused, and keeps it."""
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(SystemExit):
        api_reference.main(["-o", str(tmp_path)])
    assert [one.name for one in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.skipif(find_browser() is None, reason="no Chromium on the PATH")
def test_search_in_a_browser(reference: Path) -> None:
    """The search finds a name by words of its path, the name itself first, and loads nothing from elsewhere."""
    page = Page(find_browser())
    try:
        page.open((reference / "index.html").as_uri())
        page.type("input", "te cache_read")
        page.wait("document.querySelectorAll('#found a').length > 0")
        first = page.evaluate("document.querySelector('#found a').textContent")
        link = page.evaluate("document.querySelector('#found a').href")
        assert first == "tilewright.te.schedule.Schedule.cache_read"
        assert link.endswith("/tilewright.te.schedule.html#Schedule.cache_read")
        assert page.problems == []
        assert all(url.startswith("file:") for url in page.requests)
    finally:
        page.close()
