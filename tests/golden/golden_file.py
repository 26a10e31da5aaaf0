"""The files of golden cases: what a case shows, its passes, the program before and the program after.

    A ReLU after a convolution joins its kernel.

    passes: FuseOps{fuse_opt_level=2}
    ---------------------------------------- before
    def @main(...) {...}
    ---------------------------------------- after
    def @main(...) {...}

What comes first is a description. Then come settings, one a line: ``passes``; ``target``, the current one; ``level``,
that of the pass context; ``tolerance``, relative and absolute, where the results before and after need not be equal;
and ``not run``, the reason why the two cannot be compared by running them. ``pytest tests/golden --update-goldens``
writes the programs after anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_RULE = "-" * 40
_SETTINGS = ("passes", "target", "level", "tolerance", "not run")


@dataclass(frozen=True)
class GoldenCase:
    """A case as its file has it; ``head`` is everything up to the program before."""

    path: Path
    head: str
    settings: dict[str, str]
    before: str
    after: str

    def write(self, after: str) -> None:
        """Write the file with another program after."""
        text = f"{self.head}{_RULE} before\n{self.before}{_RULE} after\n{after}"
        self.path.write_text(text, encoding="utf-8")


def read_case(path: Path) -> GoldenCase:
    """The case in a file; a ``ValueError`` says what the file lacks."""
    found = re.fullmatch(
        rf"(?s)(?P<head>.*?){_RULE} before\n(?P<before>.*?)({_RULE} after\n(?P<after>.*))?",
        path.read_text(encoding="utf-8"),
    )
    if found is None:
        raise ValueError(f"{path} has no line '{_RULE} before'")
    settings = {}
    for name in _SETTINGS:
        line = re.search(rf"(?m)^{name}: (.*)$", found["head"])
        if line is not None:
            settings[name] = line[1].strip()
    if "passes" not in settings:
        raise ValueError(f"{path} has no line 'passes: ...'")
    if re.match(rf"({'|'.join(_SETTINGS)}): ", found["head"]):
        raise ValueError(f"{path} does not begin with a sentence that says what the case shows")
    return GoldenCase(path, found["head"], settings, found["before"], found["after"] or "")
