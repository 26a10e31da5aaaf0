"""Other code generators, from the marks on operators to code that runs: the C compiler's, and ones made here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay import transform
from tilewright.relay.backend.byoc import CSourceModule, compile_external, json_compiler
from tilewright.relay.backend.contrib.ccompiler import CALLS, generate
from tilewright.relay.dataflow_pattern import is_op, wildcard
from tilewright.relay.infer import infer_module
from tilewright.runtime.registry import register_func, remove_global_func
from tilewright.support.errors import TargetError, TilewrightError

SHAPE = (3, 4)
GENERATOR = np.random.default_rng(0)
A, B = (GENERATOR.uniform(0.5, 2, SHAPE).astype("float32") for _ in range(2))


def partitioned(body: Any, compiler: Any = "ccompiler", table: Any = None) -> tvm.IRModule:
    """A module whose operators were taken out for a code generator, by marks or by patterns."""
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    passes = [transform.InferType()]
    if table is not None:
        passes.append(transform.MergeComposite(table))
    passes += [
        transform.AnnotateTarget(compiler),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(),
    ]
    return tvm.transform.Sequential(passes)(module)


def external(module: tvm.IRModule) -> list[str]:
    """The names of the functions that were taken out."""
    return [name.name_hint for name, one in module.functions.items() if one.attrs.get("Compiler")]


def run(factory: Any, **inputs: Any) -> list[np.ndarray[Any, Any]]:
    """All outputs."""
    executor = graph_executor.GraphModule(factory["default"](tvm.cpu()))
    executor.run(**inputs)
    return [executor.get_output(number).numpy() for number in range(executor.get_num_outputs())]


def x_of(name: str) -> relay.Var:
    """A variable."""
    return relay.var(name, shape=SHAPE)


@pytest.mark.parametrize("level", [0, 3])
def test_part_of_a_program(level: int) -> None:
    """What the C compiler takes runs as C, the rest as LLVM compiled it; the two agree with NumPy."""
    x, y = x_of("x"), x_of("y")
    module = partitioned(relay.sum(relay.nn.relu(relay.exp(x) * y - relay.const(1.0)) + x, axis=1))
    assert external(module) == ["tvmgen_default_ccompiler_main_0"]
    with tvm.transform.PassContext(opt_level=level):
        factory = relay.build(module, "llvm")
    expected = (np.maximum(np.exp(A) * B - 1, 0) + A).sum(1)
    np.testing.assert_allclose(run(factory, x=A, y=B)[0], expected, rtol=1e-5)
    imported = factory.get_lib().imported_modules[0]
    assert "expf(" in imported.get_source("c")


@pytest.mark.parametrize("suffix", ["so", "tar"])
def test_export(suffix: str, tmp_path: Path) -> None:
    """The C code travels in the exported library."""
    x, y = x_of("x"), x_of("y")
    factory = relay.build(partitioned(relay.sum(x * y + x)), "llvm")
    path = tmp_path / f"model.{suffix}"
    factory.export_library(str(path))
    found = run(tvm.runtime.load_module(str(path)), x=A, y=B)[0]
    np.testing.assert_allclose(found, (A * B + A).sum(), rtol=1e-5)


def test_two_regions_two_results_and_constants() -> None:
    """Regions that something else separates are two functions; one function may have two results and hold constants."""
    x, y = x_of("x"), x_of("y")
    weights = relay.const(B)
    first = x * weights
    second = relay.negative(first)
    module = partitioned(relay.Tuple([second, relay.exp(relay.log(first)) + y]))
    assert len(external(module)) == 2
    assert max(len(getattr(module[name].body, "fields", [0])) for name in external(module)) == 2
    one, other = run(relay.build(module, "llvm"), x=A, y=B)
    np.testing.assert_allclose(one, -A * B, rtol=1e-6)
    np.testing.assert_allclose(other, A * B + B, rtol=1e-5)


REFERENCES = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negative": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "tanh": np.tanh,
    "nn.relu": lambda a: np.maximum(a, 0),
}


def test_every_operator_of_the_c_compiler() -> None:
    """Each is written rightly, with a scalar as the second operand too."""
    assert set(REFERENCES) == set(CALLS)
    x, y = x_of("x"), x_of("y")
    bodies, expected = [], []
    for name, reference in REFERENCES.items():
        op = relay.op.op.get(name)
        if op.num_inputs == 2:
            bodies += [relay.Call(op, [x, y]), relay.Call(op, [x, relay.const(2.5)])]
            expected += [reference(A, B), reference(A, np.float32(2.5))]
        else:
            bodies.append(relay.Call(op, [x]))
            expected.append(reference(A))
    module = partitioned(relay.Tuple(bodies))
    assert len(external(module)) >= 1
    found = run(relay.build(module, "llvm"), x=A, y=B)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_what_the_c_compiler_leaves() -> None:
    """Other element types, broadcasting and unknown dimensions are not taken."""
    whole = relay.var("i", shape=SHAPE, dtype="int32")
    row = relay.var("r", shape=(1, 4))
    unknown = relay.var("u", shape=(relay.Any(), 4))
    for body in (whole + whole, x_of("x") * row, relay.exp(unknown), relay.log(x_of("x"))):
        assert external(partitioned(body)) == []


@pytest.fixture
def generator() -> Iterator[dict[str, Any]]:
    """A code generator "test_codegen" that computes with NumPy, and what it was given."""
    seen: dict[str, Any] = {"functions": []}

    def generate_code(function: Any) -> Any:
        seen["functions"].append(function)
        return seen.get("result") or CSourceModule(
            generate(function),
            format="c",
            type_key="c",
            function_names=[str(function.attrs["global_symbol"])],
        )

    register_func("relay.ext.test_codegen", generate_code, override=True)
    yield seen
    remove_global_func("relay.ext.test_codegen")


def test_operators_by_mark_and_patterns_by_table(generator: dict[str, Any]) -> None:
    """A code generator gets composite functions for the patterns of its table, and says which operators it takes."""
    tvm.ir.register_op_attr("sqrt", "target.test_codegen", lambda expr: True)
    pattern = is_op("add")(is_op("multiply")(wildcard(), wildcard()), wildcard())
    relay.op.contrib.register_pattern_table("test_codegen", lambda: [("test_codegen.multiply_add", pattern)])
    table = relay.op.contrib.get_pattern_table("test_codegen")
    assert table is not None
    x, y = x_of("x"), x_of("y")
    module = partitioned(relay.sqrt(x * y + x), "test_codegen", table)
    (name,) = external(module)
    composites = []

    def look(expr: Any) -> None:
        if isinstance(expr, relay.Function) and expr.attrs.get("Composite"):
            composites.append(str(expr.attrs["Composite"]))

    relay.analysis.post_order_visit(module[name].body, look)
    assert composites == ["test_codegen.multiply_add"]
    np.testing.assert_allclose(run(relay.build(module, "llvm"), x=A, y=B)[0], np.sqrt(A * B + A), rtol=1e-6)
    assert generator["functions"][0].attrs["global_symbol"] == name


def test_one_call_for_each_function(generator: dict[str, Any]) -> None:
    """The code generator is called with each function, typed, with its name."""
    tvm.ir.register_op_attr("tanh", "target.test_codegen", lambda expr: True)
    x = x_of("x")
    module = partitioned(relay.tanh(relay.log(relay.tanh(x))), "test_codegen")
    found = run(relay.build(module, "llvm"), x=A)[0]
    np.testing.assert_allclose(found, np.tanh(np.log(np.tanh(A))), rtol=1e-5, atol=1e-6)
    assert [str(one.attrs["global_symbol"]) for one in generator["functions"]] == external(module)
    assert all(one.body.checked_type == x.type_annotation for one in generator["functions"])


def test_mistakes(generator: dict[str, Any]) -> None:
    """A code generator that is missing, gives no module, or leaves the function out; a model ahead of time."""
    module = partitioned(relay.exp(x_of("x")))
    (name,) = external(module)
    function = infer_module(module)[name]
    other = function.with_attr("Compiler", "nobody")
    with pytest.raises(TilewrightError, match=r"'nobody', which is not registered: .*relay\.ext\.nobody"):
        compile_external({name: other})
    mine = function.with_attr("Compiler", "test_codegen")
    generator["result"] = 3
    with pytest.raises(TilewrightError, match=r"returned a value of type int for .*, not a runtime module"):
        compile_external({name: mine})
    generator["result"] = CSourceModule("", format="c", type_key="c")
    with pytest.raises(TilewrightError, match="has no function"):
        compile_external({name: mine})
    taken = function.with_attr("Compiler", "ccompiler").replace(body=relay.log(function.params[0]))
    with pytest.raises(
        TilewrightError, match="'ccompiler' failed while .*: CodegenError: .*cannot write log in C"
    ):
        compile_external({name: infer_module(tvm.IRModule.from_expr(taken))[name]})
    with pytest.raises(TargetError, match="ahead of time, a model has no runtime"):
        relay.build(module, "llvm", executor="aot")


def test_the_interpreter_computes_what_was_taken_out() -> None:
    """The debug executor runs the functions by the operators' references."""
    x, y = x_of("x"), x_of("y")
    module = partitioned(relay.exp(x) * y)
    found = relay.create_executor("debug", mod=module).evaluate()(A, B).numpy()
    np.testing.assert_allclose(found, np.exp(A) * B, rtol=1e-6)


def test_the_virtual_machine(tmp_path: Path) -> None:
    """The virtual machine calls the code of others too, in a program with branches, and exports it."""
    x, y = x_of("x"), x_of("y")
    module = partitioned(relay.exp(x) * y)
    name = external(module)[0]
    choice = relay.var("c", shape=(), dtype="bool")
    a, b = x_of("a"), x_of("b")
    body = relay.If(choice, module.get_global_var(name)(a, b), a)
    module["main"] = relay.Function([choice, a, b], body)
    executable = relay.vm.compile(module, "llvm")
    path = tmp_path / "program.so"
    executable.mod.export_library(str(path))
    for library in (executable, tvm.runtime.load_module(str(path))):
        machine = tvm.runtime.vm.VirtualMachine(library, tvm.cpu())
        np.testing.assert_allclose(machine.invoke("main", True, A, B).numpy(), np.exp(A) * B, rtol=1e-6)
        np.testing.assert_array_equal(machine.invoke("main", False, A, B).numpy(), A)


@tvm.runtime.register_json_runtime
class NumPyRuntime(tvm.runtime.JSONRuntime):
    """Runs additions and multiplications with NumPy."""

    backend = "test_json"

    def compute(self, inputs: Any, outputs: Any) -> None:
        """Node by node."""
        given = iter(inputs)
        values: list[Any] = []
        for node in self.graph.nodes:
            if node.op == "input":
                values.append(next(given).numpy())
            elif node.op == "const":
                values.append(self.constants[node.name].numpy())
            else:
                operands = [values[number] for number, _ in node.inputs]
                values.append({"add": np.add, "multiply": np.multiply}[node.name](*operands))
        for output, (number, _) in zip(outputs, self.graph.outputs, strict=True):
            output.copyfrom(values[number])


for _operator, _backend in (("add", "json"), ("multiply", "json"), ("add", "hooks"), ("sin", "hostile")):
    tvm.ir.register_op_attr(_operator, f"target.test_{_backend}", lambda expr: True)


@pytest.fixture
def json_backend() -> Iterator[None]:
    """A code generator whose modules are JSON."""
    register_func("relay.ext.test_json", json_compiler(NumPyRuntime), override=True)
    yield
    remove_global_func("relay.ext.test_json")


@pytest.mark.parametrize("suffix", ["so", "tar"])
def test_json_form_travels(suffix: str, tmp_path: Path, json_backend: None) -> None:
    """A module of JSON and constants is saved in the artefact and loaded by its kind, beside C code of another."""
    x, y = x_of("x"), x_of("y")
    bound = relay.exp(relay.multiply(relay.add(x, relay.const(B)), y))
    module = partitioned(bound, ["test_json", "ccompiler"])
    assert sorted(name.split("_")[2] for name in external(module)) == ["ccompiler", "test"]
    factory = relay.build(module, "llvm")
    expected = np.exp((A + B) * B)
    np.testing.assert_allclose(run(factory, x=A, y=B)[0], expected, rtol=1e-5)
    path = tmp_path / f"model.{suffix}"
    factory.export_library(str(path))
    np.testing.assert_allclose(run(tvm.runtime.load_module(str(path)), x=A, y=B)[0], expected, rtol=1e-5)


def test_json_text(json_backend: None) -> None:
    """The text of the form is read back as it was, and a damaged one is refused."""
    module = partitioned(relay.add(x_of("x"), relay.const(B)), "test_json")
    (name,) = external(module)
    (made,) = compile_external({name: infer_module(module)[name]}).modules
    text = made.get_source("json")
    again = tvm.runtime.JSONGraph.loads(text)
    assert again.dumps() == text and [node.op for node in again.nodes] == ["input", "const", "kernel"]
    with pytest.raises(ValueError, match="the JSON form is damaged"):
        tvm.runtime.JSONGraph.loads(text.replace('"heads": [[2', '"heads": [[7'))


def test_constant_updater(json_backend: None) -> None:
    """The constants that an updater declares are parameters of the model."""
    register_func("relay.ext.test_json.constant_updater", lambda function, symbol: {f"{symbol}_p0": B})
    try:
        module = partitioned(relay.add(x_of("x"), relay.const(B)), "test_json")
        assert list(relay.build(module, "llvm").get_params()) == [f"{external(module)[0]}_p0"]
    finally:
        remove_global_func("relay.ext.test_json.constant_updater")


def test_hooks() -> None:
    """A target kind whose hook lowers functions: here to loops that subtract where the graph adds."""
    from tilewright import te
    from tilewright.target.kind import KINDS, TargetKind, register_kind

    def lower(module: tvm.IRModule) -> tvm.IRModule:
        ((name, _),) = module.functions.items()
        left, right = (te.placeholder(SHAPE, name=one) for one in "lr")
        result = te.compute(SHAPE, lambda i, j: left[i, j] - right[i, j])
        return tvm.lower(te.create_schedule(result.op), [left, right, result], name=name.name_hint)

    register_kind(TargetKind("test_hooks", 1, ("cpu",), relay_to_tir=lower))
    try:
        module = partitioned(relay.add(x_of("x"), x_of("y")), "test_hooks")
        np.testing.assert_allclose(run(relay.build(module, "llvm"), x=A, y=B)[0], A - B)
    finally:
        del KINDS["test_hooks"]


class Python(tvm.runtime.Module):
    """A module whose function is a Python callable."""

    def __init__(self, function: Any, call: Any) -> None:
        self.symbol = str(function.attrs["global_symbol"])
        self.call = call
        super().__init__("hostile", (self.symbol,))

    def _find(self, name: str) -> Any:
        return tvm.runtime.convert_to_tvm_func(self.call) if name == self.symbol else None


def leave(*_: Any) -> Any:
    """What ends a program that does not look out."""
    sys.exit(3)


def fail(*_: Any) -> Any:
    """An exception of nobody's."""
    raise KeyError("left out")


@pytest.fixture
def hostile() -> Iterator[Any]:
    """Builds a model by a code generator, and removes that again."""

    def build(generate_code: Any) -> Any:
        register_func("relay.ext.test_hostile", generate_code, override=True)
        return relay.build(partitioned(relay.sin(x_of("x")), "test_hostile"), "llvm")

    yield build
    for name in ("", ".constant_updater"):
        if tvm.get_global_func(f"relay.ext.test_hostile{name}", allow_missing=True) is not None:
            remove_global_func(f"relay.ext.test_hostile{name}")


@pytest.mark.parametrize(
    ("generate_code", "said"),
    [
        (fail, "failed while compiling .*: KeyError: 'left out'"),
        (leave, "failed while compiling .*: SystemExit: 3"),
        (lambda function: None, "returned nothing"),
        (lambda function: "module", "returned a value of type str"),
        (lambda function: tvm.runtime.Module, "returned a value of type type"),
        (lambda function: [CSourceModule("", ["x"])], "returned a value of type list"),
        (lambda function: CSourceModule("", ["other"]), "has no function .*; it has other"),
        (
            lambda function: Python(function, lambda one: None),
            "cannot be called with its 2 inputs and outputs: too many",
        ),
        (lambda function: Python(function, lambda a, b, c: None), "cannot be called .*: missing .*'c'"),
        (lambda function: Python(function, lambda *, key: None), "cannot be called with"),
    ],
)
def test_hostile_code_generators(hostile: Any, generate_code: Any, said: str) -> None:
    """Whatever a code generator does wrong, the error names it."""
    with pytest.raises(TilewrightError, match=f"(?s)'test_hostile'.*{said}"):
        hostile(generate_code)


def test_modules_that_do_not_travel(hostile: Any, tmp_path: Path) -> None:
    """A module that cannot be stored runs here; the error of an export names its kind."""
    factory = hostile(lambda function: Python(function, lambda a, b: b.copyfrom(np.sin(a.numpy()))))
    np.testing.assert_allclose(run(factory, x=A)[0], np.sin(A), rtol=1e-6)
    with pytest.raises(ValueError, match="a hostile module cannot be exported"):
        factory.export_library(str(tmp_path / "model.so"))


@pytest.mark.parametrize(
    ("update", "said"),
    [
        (leave, "failed while updating the constants of .*: SystemExit"),
        (lambda function, symbol: 3, "constant updater of 'test_hostile' returned a value of type int"),
        (lambda function, symbol: {"a": object()}, "failed while taking the constant 'a': TypeError"),
    ],
)
def test_hostile_constant_updaters(hostile: Any, update: Any, said: str) -> None:
    """The same holds for constants."""
    register_func("relay.ext.test_hostile.constant_updater", update, override=True)
    with pytest.raises(TilewrightError, match=f"(?s)test_hostile.*{said}|{said}"):
        hostile(lambda function: Python(function, lambda a, b: None))


SIN = is_op("sin")(wildcard())


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([("test_hostile.sin", SIN, fail)], "the check of the pattern 'test_hostile.sin' failed: KeyError"),
        ([("test_hostile.sin", SIN, leave)], "'test_hostile.sin' failed: SystemExit: 3"),
        ([("test_hostile.sin", SIN, lambda: True)], "'test_hostile.sin' failed: TypeError"),
        (
            [("test_hostile.sin", SIN, lambda root: "no")],
            "'test_hostile.sin' failed: .*it gave 'no', not True",
        ),
        ([("test_hostile.sin", SIN, 3)], r"not \('test_hostile.sin', .*3\)"),
        ([("test_hostile.sin", "sin")], r"not \('test_hostile.sin', 'sin'\)"),
        ([(3, SIN)], r"not \(3, "),
        ([None], "not None"),
        (7, "a pattern table is a list of entries, not a int"),
        ([("test_hostile.all", wildcard())], "'test_hostile.all' matches everything"),
        ([("test_hostile.all", SIN | wildcard())], "'test_hostile.all' matches the whole function"),
    ],
)
def test_hostile_tables(table: Any, said: str) -> None:
    """The error names the pattern, whose name begins with that of its code generator."""
    with pytest.raises(TilewrightError, match=f"(?s){said}"):
        partitioned(relay.sin(x_of("x")), "test_hostile", table)


def test_a_pattern_that_never_matches() -> None:
    """Nothing is merged, and marks decide as before."""
    module = partitioned(relay.sin(x_of("x")), "test_hostile", [("test_hostile.cos", is_op("cos")(SIN))])
    assert external(module) == ["tvmgen_default_test_hostile_main_0"]


def test_hostile_checks_of_operators() -> None:
    """The attribute ``target.NAME`` of an operator is code of the generator's as well."""
    for operator, check, said in (
        ("atan", fail, "KeyError"),
        ("asin", leave, "SystemExit"),
        ("acos", 7, "TypeError"),
    ):
        tvm.ir.register_op_attr(operator, "target.test_hostile", check)
        body = relay.Call(relay.op.get(operator), [x_of("x")])
        with pytest.raises(TilewrightError, match=f"'target.test_hostile' of {operator} failed: {said}"):
            partitioned(body, "test_hostile")


def test_hostile_tables_at_registration() -> None:
    """A table that cannot be made, and something else than a table."""
    for make, said in ((fail, "cannot be made: KeyError"), (lambda: None, "is a NoneType, not a list")):
        with pytest.raises(TilewrightError, match=f"the pattern table of 'test_hostile' {said}"):
            relay.op.contrib.register_pattern_table("test_hostile", make)
