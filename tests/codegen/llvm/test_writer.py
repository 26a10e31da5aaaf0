"""LLVM text: names, strings, metadata, declarations."""

from __future__ import annotations

from tilewright.codegen.llvm.machine import machine_for, parse
from tilewright.codegen.llvm.types import Types, float_bits, gep_element, integer_constant
from tilewright.codegen.llvm.writer import FunctionText, ModuleText, c_bytes, quote
from tilewright.support.dtype import DataType
from tilewright.target.target import Target


def test_any_name_and_text_can_be_written():
    """Names with odd letters are quoted, strings keep every byte, and LLVM reads them back."""
    machine = machine_for(Target("llvm"))
    module = ModuleText(machine.triple, machine.data_layout)
    assert quote("plain_1.x") == "plain_1.x" and quote('7 ä"') == '"7 \\C3\\A4\\22"'
    function = FunctionText('odd "name"', "ptr", [])
    words = module.string('line\nquote" back\\ ü')
    function.effect(f"ret ptr {words}")
    module.functions.append(function.text())
    assert parse(module.text(), "m").get_function('odd "name"').name == 'odd "name"'
    assert c_bytes("a\\") == '[3 x i8] c"a\\5C\\00"'


def test_equal_things_are_shared():
    """A string, a metadata node, a declaration and a group of attributes exist once."""
    module = ModuleText("", "")
    assert module.string("x") == module.string("x") != module.string("y")
    assert module.metadata("!{i32 1}") == module.metadata("!{i32 1}")
    assert module.distinct_metadata() != module.distinct_metadata()
    assert module.declare("f", "void", []) == module.declare("f", "i32", ["i32"]) == "@f"
    assert module.text().count("declare") == 1
    assert module.attributes("nounwind") == module.attributes("nounwind") == "#0"


def test_an_instruction_without_effects_is_written_once():
    """The same instruction gives the same register in every block that the first one dominates, and in no other."""
    function = FunctionText("f", "void", [])
    total = function.value("add i64 %a, %b")
    assert function.value("add i64 %a, %b") == total
    assert function.value("add i64 %b, %a") != total
    before = function.known
    function.begin("then", before)
    assert function.value("add i64 %a, %b") == total
    inside = function.value("mul i64 %a, %b")
    function.begin("after", before)
    assert function.value("add i64 %a, %b") == total
    assert function.value("mul i64 %a, %b") != inside
    function.begin("anywhere")
    assert function.value("add i64 %a, %b") != total


def test_a_load_is_repeated_once_memory_may_have_changed():
    """Stores, calls and other blocks end what is known of memory; volatile loads are never shared, and loads of what
    nobody writes always are."""
    function = FunctionText("f", "void", [])
    plain, constant = "load i32, ptr %p", "load i32, ptr %p, !invariant.load !0"
    for volatile in ("load volatile i32, ptr %p", "load atomic i32, ptr %p seq_cst, align 4"):
        assert function.value(volatile) != function.value(volatile)
    fixed = function.value(constant)
    for change in (
        lambda: function.effect("store i32 0, ptr %p"),
        lambda: function.value("call i32 @g()"),
        lambda: function.value("atomicrmw add ptr %p, i32 1 seq_cst"),
        lambda: function.begin("next", function.known),
    ):
        first = function.value(plain)
        assert function.value(plain) == first
        change()
        assert function.value(plain) != first
        assert function.value(constant) == fixed


def test_types_in_registers_and_memory():
    """bool is a bit in registers and a byte in memory; bfloat16 is its bits; float16 as the target has it."""
    modern, plain = Types(64, native_half=True), Types(32, native_half=False)
    assert (
        modern.register(DataType("boolx4")) == "<4 x i1>" and modern.memory(DataType("boolx4")) == "<4 x i8>"
    )
    assert modern.register(DataType("int4")) == "i4" and modern.memory(DataType("int4")) == "i8"
    assert (
        modern.register(DataType("float16x8")) == "<8 x half>"
        and plain.register(DataType("float16")) == "i16"
    )
    assert modern.register(DataType("bfloat16")) == plain.memory(DataType("bfloat16")) == "i16"
    assert (modern.index, plain.index) == ("i64", "i32")
    assert gep_element(DataType("int24")) == "[3 x i8]" and gep_element(DataType("handle")) == "ptr"


def test_constants():
    """Floats are written by their bits, pointers and bools by name."""
    assert float_bits(1.0) == "0x3FF0000000000000" and float_bits(float("inf")) == "0x7FF0000000000000"
    assert integer_constant(DataType("handle"), 0) == "null"
    assert integer_constant(DataType("bool"), 1) == "true"
    assert integer_constant(DataType("uint8"), 200) == "200"
