"""The attributes that TVM defines for tests of attributes: ``tvm.ir.make_node("attrs.TestAttrs", name="x")``."""

from __future__ import annotations

from typing import Any, Final

KEY: Final = "attrs.TestAttrs"
_LARGEST_AXIS: Final = 10


def add_test_attributes(attrs: Any) -> None:
    """Make them known to the module ``ir.attrs``."""

    class TestAttrs(attrs.DictAttrs):  # type: ignore[misc]
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
            super().__init__({**known, **values})

        def __eq__(self, other: object) -> bool:
            return isinstance(other, TestAttrs) and dict(self.items()) == dict(other.items())

        def __hash__(self) -> int:
            return hash(KEY)

    attrs.ATTRIBUTE_CLASSES[KEY] = TestAttrs
