"""The attributes that TVM defines for tests of attributes: ``tvm.ir.make_node("attrs.TestAttrs", name="x")``."""

from __future__ import annotations

from typing import Any, Final

KEY: Final = "attrs.TestAttrs"
_LARGEST_AXIS: Final = 10


def add_test_attributes(make_node: Any) -> None:
    """Make them known to the module ``ir.make_node``."""

    class TestAttrs(make_node.DictAttrs):  # type: ignore[misc]
        """An axis, a name, paddings and a function."""

        __slots__ = ()
        type_key = KEY

        def __init__(self, name: Any = None, **values: Any) -> None:
            known: dict[str, Any] = {"axis": _LARGEST_AXIS, "name": name, "padding": (0, 0), "func": None}
            unknown = [each for each in values if each not in known]
            if unknown:
                raise AttributeError(f"{KEY} has no field {unknown[0]!r}; it has {', '.join(known)}")
            if not 1 <= int(values.get("axis", 1)) <= _LARGEST_AXIS:
                raise AttributeError(f"{KEY}.axis is from 1 to {_LARGEST_AXIS}, not {values['axis']}")
            given = {**known, **values}
            super().__init__({**given, "padding": make_node.convert(list(given["padding"]))})

        def __eq__(self, other: object) -> bool:
            return isinstance(other, TestAttrs) and dict(self.items()) == dict(other.items())

        def __hash__(self) -> int:
            return hash(KEY)

    make_node.ATTRIBUTE_CLASSES[KEY] = TestAttrs
