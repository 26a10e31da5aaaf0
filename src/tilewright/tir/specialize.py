"""Specialisation of a function for known arguments."""
from __future__ import annotations
from typing import Any
def specialize(function: Any, param_map: Any) -> Any:
    raise NotImplementedError
