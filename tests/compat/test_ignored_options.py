"""Options that are accepted and ignored are known, typed, and read by nothing."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import tilewright as tvm
from tilewright.compat.ignored_options import PASS_OPTIONS, TARGET_OPTIONS
from tilewright.support.errors import TilewrightError

SOURCE = Path(inspect.getfile(tvm)).parent
TEXTS = {
    file: file.read_text()
    for file in SOURCE.rglob("*.py")
    if file.name not in ("ignored_options.py", "tag_table.py", "constructors.py")
}


@pytest.mark.parametrize("key", PASS_OPTIONS)
def test_pass_options(key: str) -> None:
    """The key has its default, takes values of its type only, and no file names it."""
    value_type, default = PASS_OPTIONS[key]
    assert tvm.transform.PassContext().get(key) == default
    assert tvm.transform.PassContext(config={key: value_type(1)}).get(key) == 1
    with pytest.raises(TilewrightError, match="expects"):
        tvm.transform.PassContext(config={key: "text"})
    assert [str(file) for file, text in TEXTS.items() if f'"{key}"' in text] == []


def _target_options() -> list[tuple[str, str, str]]:
    return [
        (kind, option, value_type)
        for kind, by_type in TARGET_OPTIONS.items()
        for value_type, options in by_type.items()
        for option in options.split()
    ]


@pytest.mark.parametrize(("kind", "option", "value_type"), _target_options())
def test_target_options(kind: str, option: str, value_type: str) -> None:
    """A target takes the option, keeps it in its text, and no file reads it from the attributes."""
    value = "8" if value_type == "Integer" else "1" if value_type == "Bool" else "word"
    target = tvm.target.Target(f"{kind} -{option}={value}")
    assert option in target.attrs and tvm.target.Target(str(target)).attrs[option] == target.attrs[option]
    asked = (f'attrs.get("{option}"', f'attrs["{option}"]', f'"{option}" in')
    assert [str(file) for file, text in TEXTS.items() if any(way in text for way in asked)] == []
