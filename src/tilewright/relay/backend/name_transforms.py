"""Names for the C code that is generated for a model: a prefix, then the style of functions, variables or constants."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.support.errors import TilewrightError

_PREFIX, _GENERATED = "TVM", "TVMGen"


def _prefixed(name: str, what: str) -> str:
    if not name:
        raise TilewrightError(f"{what} name is empty")
    if not name.startswith(_PREFIX):
        raise TilewrightError(f"{what} not {_PREFIX} prefixed: {name!r}; use prefix_name first")
    return name


def to_c_function_style(original_name: str) -> str:
    """``TVM_run_model`` as ``TVMRunModel``."""
    words = _prefixed(original_name, "Function").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words)


def to_c_variable_style(original_name: str) -> str:
    """``TVM_Run_Model`` as ``tvm_run_model``."""
    return _prefixed(original_name, "Variable").lower()


def to_c_constant_style(original_name: str) -> str:
    """``TVM_Run_Model`` as ``TVM_RUN_MODEL``."""
    return _prefixed(original_name, "Constant").upper()


def _joined(prefix: str, names: str | Sequence[str]) -> str:
    if isinstance(names, str):
        if not names:
            raise TilewrightError("Name is empty")
        return f"{prefix}_{names}"
    if not names:
        raise TilewrightError("Name segments empty")
    if not all(names):
        raise TilewrightError("Name segment is empty")
    return "_".join([prefix, *names])


def prefix_name(names: str | Sequence[str]) -> str:
    """A name, or several as one, with the prefix of the library: ``TVM_run``."""
    return _joined(_PREFIX, names)


def prefix_generated_name(names: str | Sequence[str]) -> str:
    """A name, or several as one, with the prefix of what is generated for a model: ``TVMGen_model_run``."""
    return _joined(_GENERATED, names)


def sanitize_name(original_name: str) -> str:
    """The name with an underscore for every character that C does not allow."""
    if not original_name:
        raise TilewrightError("Name is empty")
    return re.sub(r"[^A-Za-z0-9_]", "_", original_name)
