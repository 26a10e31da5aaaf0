"""Transposes weights at compile time that dense layers would transpose at run time."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis.extract import search_fc_transpose
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import run_on_function
from tilewright.relay.transform.simplify_fc_transpose import SimplifyFCTranspose
from tilewright.runtime.ndarray import array


def convert(func: Function, params: dict[str, Any]) -> tuple[Function, dict[str, Any]]:
    """The function and the parameters, which change in place: each weight under its name with ``.T``."""
    names = [name for name in search_fc_transpose(func) if name in params]
    for name in names:
        params[f"{name}.T"] = array(params.pop(name).numpy().T.copy())
    return run_on_function(SimplifyFCTranspose(names), func), params
