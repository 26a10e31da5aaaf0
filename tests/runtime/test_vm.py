"""The virtual machine as programs use it: inputs, results, benchmarks, values; and bytes that are no program."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.threads import in_threads

import tilewright as tvm
from tilewright import relay
from tilewright.relay.dimension_names import with_dimension_names
from tilewright.relay.loops import while_loop
from tilewright.runtime.container import ADT, Reference, tuple_object
from tilewright.runtime.vm import Executable, VirtualMachine, convert
from tilewright.runtime.vm_program import (
    LAYOUTS,
    Opcode,
    VMFunction,
    VMKernel,
    VMParameter,
    VMProgram,
    pack_dtype,
    unpack_dtype,
)
from tilewright.support.dtype import DataType
from tilewright.support.errors import RuntimeFailure, TilewrightError


@pytest.fixture(scope="module")
def compiled() -> Executable:
    """A program with a loop, closures, tuples, unknown shapes and a constant."""
    x, n = relay.var("x", shape=(relay.Any(), 4)), relay.var("n", shape=(), dtype="int32")
    i, total = relay.var("i", shape=(), dtype="int32"), relay.var("total", shape=(relay.Any(), 4))
    weight = relay.const(np.arange(4, dtype="float32"))
    loop = while_loop(
        lambda i, total: relay.less(i, n),
        [i, total],
        lambda i, total: (i + relay.const(1), relay.concatenate([total, total + weight], 0)),
    )
    y = relay.var("y", shape=(relay.Any(), 4))
    shift = relay.Function([y], y + x)
    body = relay.Tuple([loop(relay.const(0), x), shift(x)])
    function = with_dimension_names(relay.Function([x, n], body), {"x": ["rows", ""]})
    return relay.vm.compile(tvm.IRModule.from_expr(function), "llvm")


def arguments(rows: int = 2, turns: int = 2) -> tuple[Any, Any]:
    """What the program takes."""
    return np.ones((rows, 4), "float32"), np.int32(turns)


def checked(result: Any) -> None:
    """What it gives for these."""
    (turns, total), doubled = result
    assert int(turns.numpy()) == 2 and total.shape == (8, 4)
    np.testing.assert_array_equal(total.numpy()[-1], 1 + 2 * np.arange(4))
    np.testing.assert_array_equal(doubled.numpy(), np.full((2, 4), 2.0))


def test_inputs_by_position_and_by_name(compiled: Executable) -> None:
    """In the order of the parameters, however they are given."""
    machine = VirtualMachine(compiled, tvm.cpu())
    x, n = arguments()
    checked(machine.run(x, n))
    checked(machine.invoke("main", n=n, x=x))
    checked(machine.invoke("main", x, n=n))
    machine.set_input("main", x, n)
    checked(machine.invoke("main"))
    machine.invoke_stateful("main")
    assert machine.get_num_outputs() == 2 and machine.get_outputs()[1].shape == (2, 4)
    assert machine.get_input_index("n") == 1 and machine.get_input_index("none") == -1
    with pytest.raises(RuntimeFailure, match="no parameter 'z'"):
        machine.run(x, z=n)
    with pytest.raises(RuntimeFailure, match="gets no value for 'n'"):
        machine.run(x=x)
    with pytest.raises(RuntimeFailure, match="1 arguments more"):
        machine.run(x, n, x=x)
    with pytest.raises(RuntimeFailure, match="has no function 'other'"):
        machine.invoke("other", x)


def test_what_an_executable_tells(compiled: Executable) -> None:
    """Names, instructions, constants."""
    assert compiled.globals[0] == "main" and compiled.get_function_params("main") == ["x", "n"]
    assert "while_loop" in compiled.globals[1]
    assert "float32[4]" in compiled.constants
    assert "invoke" in compiled.bytecode and "@main(x, n)" in compiled.bytecode
    assert compiled.stats.startswith("Virtual machine executable")
    assert any("concatenate" in name for name in compiled.primitive_ops)
    assert compiled.lib is compiled.module


def test_memory_is_kept_or_not(compiled: Executable) -> None:
    """Both ways give the same; other words are refused, and so are other devices."""
    for choice in (
        "naive",
        "pooled",
        {tvm.cpu(): "naive"},
        {tvm.cpu(): VirtualMachine.POOLED_ALLOCATOR},
        None,
    ):
        checked(VirtualMachine(compiled, tvm.cpu(), choice).run(*arguments()))
    with pytest.raises(RuntimeFailure, match="'naive' or 'pooled'"):
        VirtualMachine(compiled, tvm.cpu(), "other")
    with pytest.raises(RuntimeFailure, match="no driver"):
        VirtualMachine(compiled, tvm.metal())
    with pytest.raises(TypeError, match="runs an Executable"):
        VirtualMachine("model", tvm.cpu())  # type: ignore[arg-type]


def test_measuring(compiled: Executable) -> None:
    """With and without the conversion of arguments."""
    machine = VirtualMachine(compiled, tvm.cpu())
    for end_to_end in (False, True):
        times = machine.benchmark(
            tvm.cpu(), *arguments(), repeat=3, number=2, end_to_end=end_to_end, cooldown_interval_ms=1
        )
        assert len(times.results) == 3 and times.min > 0


def test_several_threads(compiled: Executable) -> None:
    """One machine serves them all at once."""
    machine = VirtualMachine(compiled, tvm.cpu())
    failures: list[BaseException] = []

    def work(_: int) -> None:
        try:
            for _ in range(50):
                checked(machine._function("main")(*convert(arguments())))
        except BaseException as error:  # noqa: BLE001 - it is looked at in the test's own thread
            failures.append(error)

    in_threads(work, range(4))
    assert failures == []


def test_values_of_the_host() -> None:
    """Numbers, arrays and nested tuples become values of the machine, and come back."""
    value = tuple_object(convert([1, 2.5, True, [np.ones(2, "float32"), (3,)]]))
    assert (value.tag, len(value)) == (0, 4)
    assert [str(part.dtype) for part in list(value)[:3]] == ["int32", "float32", "bool"]
    assert int(value[-1][1][0].numpy()) == 3
    place = Reference(value)
    assert len(place.value) == 4
    with pytest.raises(RuntimeFailure, match="no field 4"):
        value[4]
    with pytest.raises(RuntimeFailure, match="cannot be given to a program"):
        convert([object()])
    assert "4 fields" in repr(value) and ADT(7, []).tag == 7


def test_a_program_round_trips(compiled: Executable) -> None:
    """Bytes that are written again are the same."""
    content, _ = compiled.save()
    again = VMProgram.from_bytes(bytes(content))
    assert again.to_bytes() == bytes(content)
    assert again.functions == compiled.program.functions and again.kernels == compiled.program.kernels
    assert again.dimension_names == {"x": ("rows", "")}


@pytest.mark.parametrize("dtype", ["int8", "bool", "bfloat16", "float32x4", "uint64"])
def test_data_types_round_trip(dtype: str) -> None:
    """As one number."""
    assert unpack_dtype(pack_dtype(DataType(dtype))) == dtype


@given(
    st.lists(st.text(max_size=5).filter(lambda text: "\0" not in text), max_size=3),
    st.lists(
        st.tuples(st.sampled_from(["float32", "int8", "bool"]), st.lists(st.integers(0, 4), max_size=3)),
        max_size=3,
    ),
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_any_program_round_trips(
    texts: list[str], constants: list[tuple[str, list[int]]], words: list[int]
) -> None:
    """Whatever it consists of."""
    parameters = (VMParameter("x"), VMParameter("y", DataType("int8"), (None, 3)))
    program = VMProgram(
        [VMFunction("f", parameters, 5, tuple(words))],
        [VMKernel(text, text) for text in texts],
        [tvm.nd.array(np.zeros(shape, dtype)) for dtype, shape in constants],
        texts,
    )
    again = VMProgram.from_bytes(program.to_bytes())
    assert again.functions == program.functions and again.texts == texts
    assert [one.shape for one in again.constants] == [one.shape for one in program.constants]
    assert again.to_bytes() == program.to_bytes()


def test_every_instruction_has_a_layout() -> None:
    """The machine of the C runtime has the same; ``csrc/vm.h`` says so in a table."""
    assert set(LAYOUTS) == set(Opcode)


def test_changed_bytes_never_crash(compiled: Executable) -> None:
    """An error, or a result: whatever the bytes are."""
    content, library = compiled.save()
    generator = np.random.default_rng(1)
    loaded = 0
    for turn in range(1500):
        changed = bytearray(content)
        for _ in range(1 + turn % 3):
            place = int(generator.integers(len(changed)))
            changed[place] = int(generator.integers(len(Opcode) if turn % 2 else 256))
        if turn % 13 == 0:
            del changed[int(generator.integers(len(changed))) :]
        try:
            machine = VirtualMachine(Executable.load_exec(changed, library), tvm.cpu())
        except TilewrightError:
            continue
        loaded += 1
        machine.set_limits(most_frames=20, most_instructions=2000, most_bytes=1 << 20)
        with suppress(TilewrightError):
            machine.run(*arguments())
    assert loaded > 50


def test_bytes_of_something_else(compiled: Executable) -> None:
    """Say what is wrong with them."""
    content, library = compiled.save()
    with pytest.raises(RuntimeFailure, match="not a program of the virtual machine"):
        Executable.load_exec(b"something else", library)
    with pytest.raises(RuntimeFailure, match="damaged"):
        Executable.load_exec(bytes(content[:-4]), library)
    with pytest.raises(RuntimeFailure, match="there are bytes after its end"):
        Executable.load_exec(bytes(content) + b"more", library)
    with pytest.raises(TypeError, match="loaded from bytes"):
        Executable.load_exec("text", library)  # type: ignore[arg-type]
    with pytest.raises(RuntimeFailure, match="no program of the virtual machine in it"):
        Executable(tvm.runtime.system_lib())


def test_a_kernel_that_is_missing(compiled: Executable) -> None:
    """Is named when the machine is made."""
    content, _ = compiled.save()
    with pytest.raises(
        RuntimeFailure, match="calls the kernel .*fused.*, and the module has no such function"
    ):
        VirtualMachine(Executable.load_exec(content, None), tvm.cpu())
