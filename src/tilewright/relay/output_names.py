"""The names of a model's outputs: an attribute of ``main``, which passes, texts and saved modules keep."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.type import TupleType, Type
from tilewright.relay.function import Function

OUTPUT_NAMES = "output_tensor_names"
"""The attribute: one name for each tensor of the result, tuples flattened. TVM's TFLite importer calls it this."""


def with_output_names(function: Function, names: Sequence[str]) -> Function:
    """The function whose results have these names."""
    return function.with_attr(OUTPUT_NAMES, list(names))


def output_names(function: Function, count: int) -> list[str]:
    """The names of ``count`` results; none if the function has no names, or not one of its own for each."""
    given = function.attrs.get(OUTPUT_NAMES)
    if not isinstance(given, (list, tuple)):
        return []
    names = [str(name) for name in given]
    return names if len(names) == count == len(set(names)) and all(names) else []


def unnamed_output(position: int) -> str:
    """What a result is called that the model has no name for."""
    return f"output_{position}"


def flat_types(kind: Type) -> list[Type]:
    """The types of the values in a result, tuples flattened."""
    if isinstance(kind, TupleType):
        return [one for part in kind.fields for one in flat_types(part)]
    return [kind]
