"""Writing vector arithmetic as Python expressions.

``Value`` is an LLVM operand with its element type and lanes; ``a * b + 1.0`` appends instructions and returns a new
``Value``. Products and sums carry no fast-math flags: the functions written with this module state explicitly, by
``multiply_add``, where an FMA may be formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from tilewright.codegen.llvm.types import float_bits, half_bits, round_to_float32, splat, vector
from tilewright.codegen.llvm.writer import FunctionText, ModuleText

Operand = Union["Value", float, int]

_FLOATS = frozenset({"half", "float", "double"})
_BITS = {"half": 16, "float": 32, "double": 64}
INTEGER_OF = {"half": "i16", "float": "i32", "double": "i64"}


class Block:
    """The function under construction."""

    def __init__(
        self,
        module: ModuleText,
        function: FunctionText,
        lanes: int,
        has_fma: bool,
        features: frozenset[str] = frozenset(),
    ) -> None:
        self.module = module
        self.function = function
        self.lanes = lanes
        self.has_fma = has_fma
        self.features = features

    def type_name(self, element: str) -> str:
        """The vector type with this element."""
        return vector(element, self.lanes)

    def value(self, element: str, operand: str) -> Value:
        """An operand of this element type."""
        return Value(self, element, operand)

    def constant(self, element: str, number: float) -> Value:
        """A constant in every lane."""
        if element == "half":
            text = f"0xH{half_bits(number):04X}"
        elif element in _FLOATS:
            text = float_bits(round_to_float32(number) if element == "float" else float(number))
        elif element == "i1":
            text = "true" if number else "false"
        else:
            text = str(int(number))
        return Value(self, element, splat(element, text, self.lanes))

    def emit(self, element: str, instruction: str) -> Value:
        """The result of an instruction."""
        return Value(self, element, self.function.value(instruction))

    def intrinsic(self, name: str, *arguments: Value, result: str = "") -> Value:
        """A call of the LLVM intrinsic ``name``; the result has the type of the first argument, unless one is named."""
        wanted = result or arguments[0].element
        text = ", ".join(f"{self.type_name(argument.element)} {argument.operand}" for argument in arguments)
        return self.emit(wanted, f"call {self.type_name(wanted)} @llvm.{name}({text})")

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """``a * b + c`` in one rounding; only where the target has the instruction."""
        first = next(part for part in (a, b, c) if isinstance(part, Value))
        return self.intrinsic("fma", *(first.lift(part) for part in (a, b, c)))

    def multiply_add(self, a: Operand, b: Operand, c: Operand) -> Value:
        """``a * b + c`` in one rounding where the target can, else in two."""
        if self.has_fma:
            return self.fma(a, b, c)
        first = next(part for part in (a, b, c) if isinstance(part, Value))
        return first.lift(a) * b + c

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """The polynomial with these coefficients, highest power first, by Horner's rule."""
        total = x.lift(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.multiply_add(total, x, coefficient)
        return total

    def has_scalef(self, x: Value) -> bool:
        """True if ``scalef`` is there for vectors of this element and the block's lanes."""
        bits = _BITS[x.element] * self.lanes
        return (bits >= 512 and bits % 512 == 0 and "avx512f" in self.features) or (
            bits in (128, 256) and "avx512vl" in self.features
        )

    def scalef(self, x: Value, power: Value) -> Value:
        """``x * 2**floor(power)``, rounded once, by AVX-512's instruction."""
        lanes, kind = min(self.lanes, 512 // _BITS[x.element]), "ps" if x.element == "float" else "pd"
        bits = lanes * _BITS[x.element]
        mask, rounding = f"i{max(lanes, 8)} -1", ", i32 4" if bits == 512 else ""
        name = f"llvm.x86.avx512.mask.scalef.{kind}.{bits}"
        part = vector(x.element, lanes)

        def one(operands: Sequence[str]) -> str:
            first, second = operands
            text = f"{part} {first}, {part} {second}, {part} zeroinitializer, {mask}{rounding}"
            return self.function.value(f"call {part} @{name}({text})")

        return self.by_parts(x.element, lanes, [x, power], one)

    def by_parts(
        self, element: str, lanes: int, arguments: Sequence[Value], make: Callable[[Sequence[str]], str]
    ) -> Value:
        """Applies ``make`` to every part of ``lanes`` lanes of the arguments, and concatenates the results."""
        if lanes == self.lanes:
            return Value(self, element, make([argument.operand for argument in arguments]))
        made = []
        for start in range(0, self.lanes, lanes):
            picks = ", ".join(f"i32 {start + lane}" for lane in range(lanes))
            made.append(
                make(
                    [
                        self.function.value(
                            f"shufflevector {self.type_name(argument.element)} {argument.operand}, "
                            f"{self.type_name(argument.element)} poison, <{lanes} x i32> <{picks}>"
                        )
                        for argument in arguments
                    ]
                )
            )
        return Value(self, element, self._joined(element, lanes, made))

    def _joined(self, element: str, lanes: int, parts: Sequence[str]) -> str:
        """Vectors of equal size as one: each is set into the lanes that are still undefined."""
        kind, wide = vector(element, lanes), self.type_name(element)
        whole = "poison"
        for start, part in zip(range(0, self.lanes, lanes), parts, strict=True):
            spread = ", ".join(
                f"i32 {lane - start}" if start <= lane < start + lanes else "i32 poison"
                for lane in range(self.lanes)
            )
            moved = self.function.value(
                f"shufflevector {kind} {part}, {kind} poison, <{self.lanes} x i32> <{spread}>"
            )
            if start == 0:
                whole = moved
                continue
            picks = ", ".join(
                f"i32 {lane if lane < start else self.lanes + lane}" for lane in range(start + lanes)
            )
            rest = ", i32 poison" * (self.lanes - start - lanes)
            whole = self.function.value(
                f"shufflevector {wide} {whole}, {wide} {moved}, <{self.lanes} x i32> <{picks}{rest}>"
            )
        return whole

    def lookup_size(self) -> int:
        """How many float32 numbers a register holds that ``lookup`` can pick from; 0 if it cannot."""
        if self.lanes % 16 == 0 and "avx512f" in self.features:
            return 16
        return 8 if self.lanes % 8 == 0 and "avx2" in self.features else 0

    def lookup(self, table: Sequence[float], index: Value) -> Value:
        """The float32 numbers of a table of ``lookup_size`` numbers at places given by the low bits of ``index``."""
        size = self.lookup_size()
        name = "avx512.permvar.sf.512" if size == 16 else "avx2.permps"
        kind, places = vector("float", size), vector("i32", size)
        numbers = ", ".join(f"float {float_bits(round_to_float32(number))}" for number in table)

        def one(operands: Sequence[str]) -> str:
            return self.function.value(
                f"call {kind} @llvm.x86.{name}({kind} <{numbers}>, {places} {operands[0]})"
            )

        return self.by_parts("float", size, [index], one)

    def unless_all_false(
        self, condition: Value, otherwise: Sequence[Value], make: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """``make()`` if the condition holds in any lane, else ``otherwise``; the branch is rarely taken."""
        function = self.function
        test = condition.operand
        if self.lanes > 1:
            test = function.value(f"call i1 @llvm.vector.reduce.or({self.type_name('i1')} {test})")
        inside, after = function.new_label("rare"), function.new_label("common")
        before = function.block
        weights = self.module.metadata('!{!"branch_weights", i32 1, i32 1048576}')
        function.branch_if(test, inside, after, f", !prof {weights}")
        function.begin(inside)
        made = make()
        last = function.block
        function.branch(after)
        function.begin(after)
        return [
            self.emit(
                old.element,
                f"phi {self.type_name(old.element)} [ {new.operand}, %{last} ], [ {old.operand}, %{before} ]",
            )
            for old, new in zip(otherwise, made, strict=True)
        ]

    def select(self, condition: Value, yes: Operand, no: Operand) -> Value:
        """``yes`` in the lanes where the condition holds, ``no`` in the others."""
        typed = yes if isinstance(yes, Value) else no
        if not isinstance(typed, Value):
            raise TypeError("a select needs at least one value of known type")
        first, second = typed.lift(yes), typed.lift(no)
        kind = self.type_name(typed.element)
        return self.emit(
            typed.element,
            f"select {self.type_name('i1')} {condition.operand}, {kind} {first.operand}, {kind} {second.operand}",
        )


class Value:
    """An operand with the element type ``element``; arithmetic appends instructions to its block."""

    __slots__ = ("block", "element", "operand")

    def __init__(self, block: Block, element: str, operand: str) -> None:
        self.block = block
        self.element = element
        self.operand = operand

    def lift(self, other: Operand) -> Value:
        """A number as a constant of this value's type; a value as it is."""
        return other if isinstance(other, Value) else self.block.constant(self.element, other)

    def _binary(self, float_name: str, integer_name: str, other: Operand, swap: bool = False) -> Value:
        right = self.lift(other)
        left, right = (right, self) if swap else (self, right)
        kind = self.block.type_name(self.element)
        name = f"{float_name} " if self.element in _FLOATS else f"{integer_name} "
        return self.block.emit(self.element, f"{name}{kind} {left.operand}, {right.operand}")

    def __add__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other, swap=True)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other, swap=True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other)

    def __rmul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other, swap=True)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "sdiv", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "sdiv", other, swap=True)

    def __neg__(self) -> Value:
        kind = self.block.type_name(self.element)
        if self.element in _FLOATS:
            return self.block.emit(self.element, f"fneg {kind} {self.operand}")
        return self.block.constant(self.element, 0) - self

    def __and__(self, other: Operand) -> Value:
        return self._binary("", "and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("", "or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("", "xor", other)

    def __invert__(self) -> Value:
        return self ^ (1 if self.element == "i1" else -1)

    def shift_left(self, other: Operand) -> Value:
        """Bits moved up."""
        return self._binary("", "shl", other)

    def shift_right(self, other: Operand) -> Value:
        """Bits moved down, zeros coming in."""
        return self._binary("", "lshr", other)

    def shift_right_signed(self, other: Operand) -> Value:
        """Bits moved down, the sign kept."""
        return self._binary("", "ashr", other)

    def _compare(self, float_name: str, integer_name: str, other: Operand) -> Value:
        right = self.lift(other)
        kind = self.block.type_name(self.element)
        name = f"fcmp {float_name}" if self.element in _FLOATS else f"icmp {integer_name}"
        return self.block.emit("i1", f"{name} {kind} {self.operand}, {right.operand}")

    def __lt__(self, other: Operand) -> Value:
        return self._compare("olt", "slt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("ole", "sle", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("ogt", "sgt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("oge", "sge", other)

    def equals(self, other: Operand) -> Value:
        """True where equal; never for NaN."""
        return self._compare("oeq", "eq", other)

    def differs(self, other: Operand) -> Value:
        """True where different, and where either is NaN."""
        return self._compare("une", "ne", other)

    def below(self, other: Operand) -> Value:
        """Less, as unsigned integers."""
        return self._compare("olt", "ult", other)

    def is_nan(self) -> Value:
        """True where this is not a number."""
        return self._compare("uno", "ne", self)

    def bitcast(self, element: str) -> Value:
        """The same bits as another type of equal size."""
        if element == self.element:
            return self
        return self._convert("bitcast", element)

    def bits(self) -> Value:
        """The bits of a float as an integer."""
        return self.bitcast(INTEGER_OF[self.element])

    def to_float(self, element: str) -> Value:
        """A signed integer or float converted to a float type."""
        if element == self.element:
            return self
        if self.element in _FLOATS:
            return self._convert("fpext" if _BITS[element] > _BITS[self.element] else "fptrunc", element)
        return self._convert("sitofp", element)

    def to_integer(self, element: str) -> Value:
        """A float truncated to an integer (the value must fit), or an integer sign-extended or cut."""
        if element == self.element:
            return self
        if self.element in _FLOATS:
            return self._convert("fptosi", element)
        return self._convert("sext" if int(element[1:]) > int(self.element[1:]) else "trunc", element)

    def zero_extend(self, element: str) -> Value:
        """An unsigned integer widened."""
        return self._convert("zext", element)

    def _convert(self, how: str, element: str) -> Value:
        source, result = self.block.type_name(self.element), self.block.type_name(element)
        return self.block.emit(element, f"{how} {source} {self.operand} to {result}")

    def absolute(self) -> Value:
        """The magnitude."""
        return self.block.intrinsic("fabs", self)

    def copysign(self, sign: Value) -> Value:
        """This magnitude with the sign of another value."""
        return self.block.intrinsic("copysign", self, sign)
