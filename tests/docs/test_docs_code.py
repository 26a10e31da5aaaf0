"""Every Python block of the README and of the documents runs, in order, as a reader would run it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_COMMANDS = {ROOT / "docs" / "deploy.md"}
"""Pages whose Python needs what their commands made: test_deploy_page.py runs both."""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page):
    """The page's blocks, each with as many lines before it as in the page, so that errors point at the right line."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text.count("\n", 0, block.start(1)) + block.group(1) for block in BLOCK.finditer(text)]


def test_blocks_are_found():
    """The README and the pages on tensor expressions and schedules have code to run."""
    assert blocks_of(ROOT / "README.md")
    assert sum(len(blocks_of(page)) for page in PAGES) >= 10


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page not in WITH_COMMANDS],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_code_runs(page, tmp_path, monkeypatch):
    """The blocks of one page share their names, and run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in blocks_of(page):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Every link to a file of the repository has a file at its end."""
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        assert "://" in link or (page.parent / link).exists(), link


def test_readme_shows_exactly_the_two_commands():
    """CI reads the two commands from the README's ``sh`` blocks: the demo first, the tests second."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^```sh\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
    assert commands == ["pip install . && tilewright demo", 'pip install ".[test]" && pytest -n auto']
