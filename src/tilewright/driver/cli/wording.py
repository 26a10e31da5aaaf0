"""Error messages in the words of the command line.

What the commands call can be called from Python too, and its messages name Python's arguments: ``executor='vm'``,
``shape={'x': [1, 4]}``. A user of the command line is told of options instead: ``--executor vm``,
``--input-shapes "x:[1,4]"``.
"""

from __future__ import annotations

import ast
import re
import shlex

OPTIONS = {
    "output_format": "-f",
    "package_path": "-o",
    "executor": "--executor",
    "interface": "--executor-aot-interface-api",
    "cross": "--cross-compiler",
    "cross_options": "--cross-compiler-options",
    "tuning_records": "--tuning-records",
    "model_format": "--model-format",
    "desired_layout": "--desired-layout",
    "target": "--target",
    "shape": "--input-shapes",
    "shape_dict": "--input-shapes",
}
"""The option for each argument of Python's functions."""

_NAMES = "|".join(sorted(OPTIONS, key=len, reverse=True))
_ARGUMENT = re.compile(rf"(?<![\w.\-])({_NAMES})=('[^']*'|\{{[^{{}}]*\}}|(?![\w'\"\[({{]))")


def as_options(message: str) -> str:
    """The message with options in the place of arguments."""
    return _ARGUMENT.sub(_option, message)


def _option(found: re.Match[str]) -> str:
    option, text = OPTIONS[found[1]], found[2]
    if not text:
        return option
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return found[0]
    if isinstance(value, dict):
        shapes = [
            f"{name}:[{','.join('?' if one is None else str(one) for one in sizes)}]"
            for name, sizes in value.items()
        ]
        return f'{option} "{" ".join(shapes)}"'
    return f"{option} {shlex.quote(str(value))}"
