"""What tensors, lists and dictionaries hold while a graph is converted.

TorchScript writes in place, and views share memory. The store gives each cell its present content, so that a graph
converts to expressions without side effects: a write replaces the content, and a view is computed again from the tensor
that it looks at when that has changed.

Branches and loop bodies have frames of their own: what they write stays in their frame until it is joined. Inside the
body of a loop that stays a loop, values from outside are variables, so that they are computed once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Constant, Let, Var
from tilewright.relay.frontend.torch.node import Expr, Scope
from tilewright.relay.frontend.torch.script.values import (
    Cell,
    DictValue,
    InPlaceError,
    InputList,
    ListValue,
    Stack,
    Tensor,
    Unreadable,
)
from tilewright.relay.frontend.torch.script.views import written_through
from tilewright.relay.infer import type_of
from tilewright.support.errors import ModelError


class Frame:
    """What was written since it was opened."""

    def __init__(self, parent: Frame | None, region: Any = None) -> None:
        self.parent = parent
        self.contents: dict[Cell, Any] = {}
        self.captures: dict[RelayExpr, Var] | None = None if region is None else {}
        self.region: Any = region
        if region is None and parent is not None:
            self.region = parent.region

    def bound(self, expr: RelayExpr) -> RelayExpr:
        """An expression with the variables that stand for values from outside bound to them."""
        for outer, variable in reversed(list((self.captures or {}).items())):
            expr = Let(variable, outer, expr)
        return expr


class Store:
    """The contents of all cells."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.frame = Frame(None)
        self.level = 0
        self.written_attributes: dict[str, None] = {}

    # Frames

    def open(self, region: Any = None) -> Frame:
        """Begin a frame; with a ``region`` it is that of a loop's body."""
        self.frame = Frame(self.frame, region)
        self.level += 1
        return self.frame

    def close(self, frame: Frame, keep: bool = False) -> None:
        """End the frame, and the ones opened within it; its contents are forgotten, or kept as those of the frame
        around it."""
        while True:
            closed = self.frame
            assert closed.parent is not None
            self.frame = closed.parent
            self.level -= 1
            if closed is frame:
                break
        if keep:
            self.adopt(frame)

    def adopt(self, frame: Frame) -> None:
        """Keep what a closed frame wrote as if it had been written without it."""
        self.frame.contents.update(frame.contents)
        for cell in frame.contents:
            cell.level = min(cell.level, self.level)

    def changed(self, frame: Frame) -> list[Cell]:
        """The cells from outside that the innermost open frame has written."""
        return [cell for cell in frame.contents if cell.level < self.level]

    # Contents

    def content(self, cell: Cell) -> Any:
        """What a cell holds now."""
        found = self._content(self.frame, cell)
        if isinstance(found, Unreadable):
            raise InPlaceError(found.reason)
        return found

    def _content(self, frame: Frame | None, cell: Cell) -> Any:
        crossed: list[Frame] = []
        while frame is not None:
            if cell in frame.contents:
                found = frame.contents[cell]
                for inner in reversed(crossed):
                    found = self._captured_content(inner, found)
                return found
            if frame.captures is not None:
                crossed.append(frame)
            frame = frame.parent
        raise AssertionError("a cell without content")

    def _captured_content(self, frame: Frame, content: Any) -> Any:
        if isinstance(content, RelayExpr):
            return self._captured(frame, content)
        if isinstance(content, Stack):
            return Stack(content.element, tuple(self._captured(frame, leaf) for leaf in content.leaves))
        if isinstance(content, InputList):
            return InputList(self._captured(frame, content.expr), content.kind)
        return content

    def _captured(self, frame: Frame, expr: RelayExpr) -> RelayExpr:
        if isinstance(expr, (Var, Constant)):
            return expr
        assert frame.captures is not None
        if expr not in frame.captures:
            variable = Var("captured", type_of(expr, self.scope.module))
            if expr in self.scope.numbers:
                self.scope.number(variable)
            frame.captures[expr] = variable
        return frame.captures[expr]

    def set_content(self, cell: Cell, content: Any) -> None:
        """Replace what a cell holds; cells that may be the same memory cannot be read any more."""
        self.frame.contents[cell] = content
        if cell.attribute:
            self.written_attributes[cell.attribute] = None
        if cell.entangled:
            self._spoil(cell)

    def _spoil(self, written: Cell) -> None:
        reason = Unreadable(
            "a tensor or list is read that may share its memory with one that was written in place, and whether it "
            "does is decided only when the model runs: write to a copy (clone) instead"
        )
        pending, seen = [written], {written}
        while pending:
            for other in pending.pop().entangled - seen:
                seen.add(other)
                pending.append(other)
                self.frame.contents[other] = reason

    @staticmethod
    def entangle(one: Cell, other: Cell) -> None:
        """Note that two cells may be the same memory."""
        if one is not other:
            one.entangled.add(other)
            other.entangled.add(one)

    # Handles

    def cell(self, content: Any, attribute: str = "") -> Cell:
        """A new cell."""
        made = Cell(self.level, attribute=attribute)
        self.frame.contents[made] = content
        return made

    def tensor(self, expr: RelayExpr, number: str = "", attribute: str = "") -> Tensor:
        """A new tensor; or a number of a kind."""
        if number:
            self.scope.number(expr)  # type: ignore[arg-type]
        return Tensor(self.cell(expr, attribute), self.frame.region, number=number)

    def view(self, parent: Tensor, view: Any, expr: RelayExpr) -> Tensor:
        """A view of a tensor, whose value now is ``expr``."""
        # The parent as it is now: its shape may change in place.
        made = Tensor(parent.cell, self.frame.region, replace(parent), view, quantization=parent.quantization)
        made.computed = (self.read(parent), expr)
        return made

    def list_of(self, items: Any) -> ListValue:
        """A new list."""
        return ListValue(self.cell(items if isinstance(items, (Stack, InputList)) else list(items)))

    def dict_of(self, items: dict[Any, Any]) -> DictValue:
        """A new dictionary."""
        return DictValue(self.cell(dict(items)))

    # Tensors

    def read(self, tensor: Tensor) -> Expr:
        """The value of a tensor now."""
        return cast(Expr, self._read(self.frame, tensor))

    def _read(self, frame: Frame, tensor: Tensor) -> RelayExpr:
        crossed: list[Frame] = []
        while tensor.cell not in frame.contents and not (
            frame.captures is not None and tensor.region is frame.region
        ):
            if frame.captures is not None:
                crossed.append(frame)
            if frame.parent is None:
                break
            frame = frame.parent
        found = self._evaluated(frame, tensor)
        for inner in reversed(crossed):
            found = self._captured(inner, found)
        return found

    def _evaluated(self, frame: Frame, tensor: Tensor) -> RelayExpr:
        if tensor.parent is None:
            content = self._content(frame, tensor.cell)
            if isinstance(content, Unreadable):
                raise InPlaceError(content.reason)
            assert isinstance(content, RelayExpr)
            return content
        base = self._read(frame, tensor.parent)
        if tensor.computed is None or tensor.computed[0] is not base:
            assert tensor.view is not None
            tensor.computed = (base, tensor.view(base))
        return tensor.computed[1]

    def write(self, tensor: Tensor, value: RelayExpr) -> None:
        """Replace the elements of a tensor, and with them those of what it is a view of."""
        while tensor.parent is not None:
            assert tensor.view is not None
            value = written_through(self.scope, tensor.view, self.read(tensor.parent), value)
            tensor = tensor.parent
        self.set_content(tensor.cell, value)

    def kind(self, expr: RelayExpr) -> TensorType:
        """The type of a tensor."""
        found = type_of(expr, self.scope.module)
        if not isinstance(found, TensorType):
            raise ModelError(f"a value is {found}, not a tensor")
        return found
