"""LLVM IR as text: functions made of basic blocks, and the module around them.

Text is the fastest form to build from Python: a list of strings that is joined once and parsed once by LLVM. Operands
are strings (``%v7``, ``3``, ``splat (float 0x...)``); the type is written where the operand is used.

An instruction without effects that says the same as one before it is not written again: unrolled register tiles repeat
most of their index arithmetic, and what is never written LLVM need not parse, combine and number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_PURE = frozenset(
    {
        *("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and", "or", "xor"),
        *("fneg", "fadd", "fsub", "fmul", "fdiv", "icmp", "fcmp", "select", "getelementptr"),
        *("trunc", "zext", "sext", "fpext", "fptrunc", "fptosi", "fptoui", "sitofp", "uitofp"),
        *("bitcast", "ptrtoint", "inttoptr", "insertelement", "extractelement", "shufflevector"),
    }
)
"""Instructions whose value depends on their operands only."""


class FunctionText:
    """One function under construction. Allocas go to the entry block, wherever they are requested."""

    def __init__(
        self,
        name: str,
        return_type: str,
        parameters: Sequence[tuple[str, str]],
        header: str = "",
        attributes: str = "",
    ) -> None:
        self.name = name
        self.return_type = return_type
        self.parameters = list(parameters)
        self.header = header
        self.attributes = attributes
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.block = "entry"
        self.known: dict[str, str] = {}
        """The registers that hold the values of pure instructions here, by instruction."""
        self._loaded: dict[str, str] = {}
        self._count = 0
        self._message_values = ""
        self._most_message_values = 0

    def name_value(self) -> str:
        """A fresh register name."""
        self._count += 1
        return f"%v{self._count}"

    def value(self, instruction: str) -> str:
        """The register that holds the result of an instruction, which is appended unless it would say nothing new."""
        opcode = instruction.partition(" ")[0]
        if opcode in _PURE:
            return self.pure(instruction)
        if opcode == "load":
            if "!invariant.load" in instruction:
                return self.pure(instruction)
            if not instruction.startswith(("load volatile", "load atomic")):
                return self._once(self._loaded, instruction)
        self._loaded.clear()
        return self._appended(instruction)

    def pure(self, instruction: str) -> str:
        """The register that holds the result of an instruction that has no effect and reads no memory."""
        return self._once(self.known, instruction)

    def _once(self, known: dict[str, str], instruction: str) -> str:
        name = known.get(instruction)
        if name is None:
            name = known[instruction] = self._appended(instruction)
        return name

    def _appended(self, instruction: str) -> str:
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def effect(self, instruction: str) -> None:
        """Append an instruction that has no result; it may write memory."""
        self._loaded.clear()
        self.lines.append(f"  {instruction}")

    def new_label(self, hint: str) -> str:
        """A fresh block name."""
        self._count += 1
        return f"{hint}{self._count}"

    def begin(self, label: str, known: Mapping[str, str] | None = None) -> None:
        """Start a block; the one before must have ended. ``known`` is what was known at the end of a block that
        dominates this one."""
        self.lines.append(f"{label}:")
        self.block = label
        self.known = {} if known is None else dict(known)
        self._loaded.clear()

    def branch(self, label: str) -> None:
        """End the block by going to another."""
        self.lines.append(f"  br label %{label}")

    def branch_if(self, condition: str, then_label: str, else_label: str, metadata: str = "") -> None:
        """End the block by going to one of two others."""
        self.lines.append(f"  br i1 {condition}, label %{then_label}, label %{else_label}{metadata}")

    def alloca(self, kind: str, align: int) -> str:
        """Memory that lives as long as the call."""
        name = self.name_value()
        self.allocas.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def message_values(self, count: int) -> str:
        """Memory for this many numbers of a message; a call fails with one message, so all of them share it."""
        if not self._message_values:
            self._message_values = self.name_value()
        self._most_message_values = max(self._most_message_values, count)
        return self._message_values

    def text(self) -> str:
        """The definition."""
        if self._message_values:
            kind = f"[{self._most_message_values} x i64]"
            self.allocas.append(f"  {self._message_values} = alloca {kind}, align 8")
            self._message_values = ""
        parameters = ", ".join(f"{kind} {name}" for kind, name in self.parameters)
        head = f"define {self.header}{' ' if self.header else ''}{self.return_type} @{quote(self.name)}({parameters})"
        body = [f"{head} {self.attributes} {{", "entry:", *self.allocas, *self.lines, "}"]
        return "\n".join(body)


class ModuleText:
    """A module under construction: functions, declarations, strings, variables and metadata."""

    def __init__(self, triple: str, data_layout: str) -> None:
        self.triple = triple
        self.data_layout = data_layout
        self.functions: list[str] = []
        self.defined: set[str] = set()
        self.declarations: dict[str, str] = {}
        self.globals: list[str] = []
        self.attribute_groups: dict[str, int] = {}
        self.has_scalar_loops = False
        """True if there is an innermost loop that LLVM may vectorize."""
        self.has_small_loops = False
        """True if there is a loop over vectors that LLVM may unroll."""
        self._strings: dict[str, str] = {}
        self._metadata: list[str] = []
        self._metadata_numbers: dict[str, int] = {}
        self._unique = 0

    def unique(self, hint: str) -> str:
        """A global name that nothing else in the module has."""
        self._unique += 1
        return f"{hint}.{self._unique}"

    def declare(self, name: str, return_type: str, parameters: Sequence[str], attributes: str = "") -> str:
        """Declare an outside function unless it is known already; its operand."""
        if name not in self.declarations:
            text = f"declare {return_type} @{quote(name)}({', '.join(parameters)}) {attributes}"
            self.declarations[name] = text.rstrip()
        return f"@{quote(name)}"

    def string(self, text: str) -> str:
        """A NUL-terminated constant; its operand."""
        found = self._strings.get(text)
        if found is None:
            found = self._strings[text] = f"@.str.{len(self._strings)}"
            data = c_bytes(text)
            self.globals.append(f"{found} = private unnamed_addr constant {data}, align 1")
        return found

    def add_global(self, definition: str) -> None:
        """Append a global variable's definition."""
        self.globals.append(definition)

    def metadata(self, text: str) -> str:
        """The number of a metadata node with this content; equal contents share a node."""
        found = self._metadata_numbers.get(text)
        if found is None:
            found = self._metadata_numbers[text] = len(self._metadata)
            self._metadata.append(text)
        return f"!{found}"

    def distinct_metadata(self, operands: str = "") -> str:
        """A new node that is equal to no other: its first operand is itself."""
        number = len(self._metadata)
        self._metadata.append(f"distinct !{{!{number}{', ' if operands else ''}{operands}}}")
        return f"!{number}"

    def attributes(self, text: str) -> str:
        """A reference to a group of function attributes."""
        number = self.attribute_groups.setdefault(text, len(self.attribute_groups))
        return f"#{number}"

    def text(self) -> str:
        """The whole module."""
        parts = [f'target datalayout = "{self.data_layout}"', f'target triple = "{self.triple}"']
        parts.extend(self.globals)
        parts.extend(text for name, text in self.declarations.items() if name not in self.defined)
        parts.extend(self.functions)
        parts.extend(f"attributes #{number} = {{ {text} }}" for text, number in self.attribute_groups.items())
        parts.extend(f"!{number} = {text}" for number, text in enumerate(self._metadata))
        return "\n".join(parts) + "\n"


def quote(name: str) -> str:
    """A global name, in quotes where it has letters that LLVM does not take bare."""
    if (
        name
        and all(letter.isascii() and (letter.isalnum() or letter in "_.$-") for letter in name)
        and not name[0].isdigit()
    ):
        return name
    return '"' + escape(name.encode()) + '"'


def escape(data: bytes) -> str:
    """Bytes as they are inside LLVM's quotes."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:02X}" for byte in data
    )


def c_bytes(text: str) -> str:
    """A NUL-terminated array constant with its type."""
    data = text.encode() + b"\0"
    return f'[{len(data)} x i8] c"{escape(data)}"'
