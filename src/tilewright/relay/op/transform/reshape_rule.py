"""The result shape of ``reshape``, from the input shape and the requested one.

A positive number is a dimension. The others are codes: 0 copies the next dimension (it is a dimension of size zero with
``allow_zero``); -1, at most once, is inferred; -2 copies all remaining dimensions; -3 multiplies the next two; -4
splits the next one into the two numbers that follow it, of which one may be -1.

Copied dimensions cancel when -1 is computed, so that an unknown batch size is preserved: (?, 4, 5) with (0, -1) is (?,
20).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.shapes import (
    Dimension,
    Shape,
    combine,
    equal_dimensions,
    product,
    require,
    require_multiple,
    shape_text,
)


class _Reading:
    """The dimensions as the codes consume them."""

    def __init__(self, shape: Shape, codes: Sequence[int]) -> None:
        self.shape = shape
        self.codes = codes
        self.position = 0
        self.result: list[Dimension | None] = []
        self.loose_inputs: list[Dimension] = []
        self.loose_outputs: list[Dimension] = []

    def message(self, reason: str) -> str:
        return f"reshape of {shape_text(self.shape)} to {tuple(self.codes)}: {reason}"

    def fail(self, reason: str) -> RelationError:
        return RelationError(self.message(reason))

    def next_dimension(self, code: int) -> Dimension:
        if self.position >= len(self.shape):
            raise self.fail(f"no dimension is left for {code}")
        self.position += 1
        return self.shape[self.position - 1]

    def literal(self, extent: int) -> None:
        """A dimension of a given size; a dimension of the input, in turn, goes into the balance."""
        self.result.append(extent)
        self.loose_outputs.append(extent)
        if self.position < len(self.shape):
            self.loose_inputs.append(self.next_dimension(extent))

    def inferred(self) -> None:
        """The place of -1."""
        if None in self.result:
            raise self.fail("-1 occurs twice")
        self.result.append(None)
        if self.position < len(self.shape):
            self.loose_inputs.append(self.next_dimension(-1))

    def split(self, first: int, second: int) -> None:
        """-4: one dimension as two."""
        whole = self.next_dimension(-4)
        if first == -1 and second == -1:
            raise self.fail("-4 needs one of the two numbers that follow it")
        if 0 in (first, second) or first < -1 or second < -1:
            raise self.fail(f"-4 splits into positive numbers, not {first} and {second}")
        part = second if first == -1 else first
        other = combine(lambda a, b: a // b, whole, part)
        message = self.message(f"{whole} is not {first} times {second}")
        if first != -1 and second != -1:
            other = second
            require(equal_dimensions, (whole, first * second), message)
        else:
            require_multiple(whole, part, message)
        self.result.extend([other, part] if first == -1 else [part, other])


def reshaped(shape: Shape, codes: Sequence[int], allow_zero: bool = False) -> Shape:
    """The new shape; an error where the number of elements does not fit."""
    reading = _Reading(shape, codes)
    index = 0
    while index < len(codes):
        code = codes[index]
        index += 1
        if code > 0 or (code == 0 and allow_zero):
            reading.literal(code)
        elif code == 0:
            reading.result.append(reading.next_dimension(0))
        elif code == -1:
            reading.inferred()
        elif code == -2:
            reading.result.extend(shape[reading.position :])
            reading.position = len(shape)
        elif code == -3:
            first, second = reading.next_dimension(-3), reading.next_dimension(-3)
            reading.result.append(combine(lambda a, b: a * b, first, second))
        elif code == -4:
            if index + 2 > len(codes):
                raise reading.fail("two numbers follow -4")
            reading.split(codes[index], codes[index + 1])
            index += 2
        else:
            raise reading.fail(f"{code} is not a code")
    return _balanced(reading)


def _balanced(reading: _Reading) -> Shape:
    """Fill in -1, and check that the number of elements stays."""
    have = product([*reading.loose_inputs, *reading.shape[reading.position :]])
    given = product(reading.loose_outputs)
    if None in reading.result:
        if given == 0:
            raise reading.fail("-1 can be anything where another dimension is zero")
        require_multiple(have, given, reading.message(f"{have} elements do not divide by {given}"))
        rest = combine(lambda a, b: a // b, have, given)
        return tuple(rest if extent is None else extent for extent in reading.result)
    shape = tuple(extent for extent in reading.result if extent is not None)
    before, after = product(reading.shape), product(shape)
    require(equal_dimensions, (before, after), reading.message(f"{before} elements do not become {after}"))
    return shape


def reshaped_from_the_right(shape: Shape, codes: Sequence[int]) -> Shape:
    """As ``reshaped``, with the dimensions and codes read from the last to the first."""
    if -4 in codes:
        raise RelationError(
            f"reverse_reshape of {shape_text(shape)} to {tuple(codes)}: -4 can not be read from the right"
        )
    return reshaped(shape[::-1], codes[::-1])[::-1]
