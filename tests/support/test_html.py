"""HTML for notebooks: escaped, folded, and of a size that a notebook can keep."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.contrib import graph_executor
from tilewright.relay.backend import vm
from tilewright.runtime.benchmark import BenchmarkResult
from tilewright.runtime.profiling import NodeRun, Report
from tilewright.runtime.vm import VirtualMachine
from tilewright.support import html

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>\x1b[2J'
ALLOWED = {
    "div",
    "style",
    "b",
    "span",
    "details",
    "summary",
    "pre",
    "i",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}


class Reader(HTMLParser):
    """Collects the tags and the text of a page, and checks that what is opened is closed."""

    def __init__(self):
        super().__init__()
        self.tags, self.words, self.stack = set(), [], []

    def handle_starttag(self, tag, attributes):
        """A tag that opens."""
        self.tags.add(tag)
        self.stack.append(tag)
        for name, value in attributes:
            assert name in ("class", "open", "style"), name
            assert name != "style" or re.fullmatch(r"width:\d+px", value)

    def handle_endtag(self, tag):
        """A tag that closes."""
        assert self.stack.pop() == tag

    def handle_data(self, data):
        """Text, without the style sheet."""
        if not self.stack or self.stack[-1] != "style":
            self.words.append(data)


def read(page):
    """The text of a page that has no tag but harmless ones, all of them closed."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.stack == [] and reader.tags <= ALLOWED
    return "".join(reader.words)


def test_names_are_text_and_never_markup():
    """A model's names are shown as they are, whatever they look like; terminals' commands are written out."""
    shown = read(html.fragment(HOSTILE, html.table([HOSTILE], [[HOSTILE]]), html.program(HOSTILE, HOSTILE)))
    assert shown.count('<script>alert("x")</script>') == 5 and r"\x1b[2J" in shown
    assert HOSTILE.partition("\x1b")[0] in read(html.facts([(HOSTILE, HOSTILE)]))


def test_a_hostile_model_is_shown_as_text():
    """The name of an input is a script."""
    x = relay.var("x<script>alert(1)</script>", shape=(4,))
    shown = read(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))._repr_html_())
    assert "<script>alert(1)</script>" in shown and "exp(" in shown


def test_many_parameters_are_folded_and_all_there():
    """The signature of a function with many weights is one word that opens; the return type stays."""
    variables = [relay.var(f"weight_{number}", shape=(2, 3)) for number in range(30)]
    body = variables[0]
    for one in variables[1:]:
        body = body + one
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(variables, body)))
    page = module._repr_html_()
    shown = read(page)
    assert "<summary>30 parameters</summary>" in page and "%weight_29: Tensor[(2, 3), float32]" in shown
    assert ") -> Tensor[(2, 3), float32] {" in shown


def test_long_programs_are_cut_with_a_note():
    """Thousands of lines do not go into a notebook's file."""
    page = html.program("\n".join(f"line {number}" for number in range(5000)))
    assert len(page) < 40_000 and "and 4600 more lines" in read(page) and "<details>" in page
    assert len(html.text("x" * 10**6)) < 3000


@pytest.mark.parametrize("source", ['"unclosed', "/* unclosed", "%", "T.x(" + "(" * 200, "# only"])
def test_any_text_is_a_program(source):
    """Highlighting never loses a character."""
    assert source in read(html.program(source))


def matmul_schedule():
    """A product with a computation placed in the loops of another."""
    left, right = te.placeholder((64, 32), name="left"), te.placeholder((32, 64), name="right")
    k = te.reduce_axis((0, 32), name="k")
    product = te.compute((64, 64), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="product")
    result = te.compute((64, 64), lambda i, j: te.max(product[i, j], 0.0), name="result")
    schedule = te.create_schedule(result.op)
    outer, inner = schedule[result].split(result.op.axis[0], factor=8)
    schedule[result].parallel(outer)
    schedule[result].vectorize(result.op.axis[1])
    schedule[product].compute_at(schedule[result], outer)
    return schedule, [left, right, result]


def test_schedules_show_their_loops():
    """Stages nest as they are placed; loops say how they run and how far, where that is known before lowering."""
    schedule, arguments = matmul_schedule()
    shown = read(schedule._repr_html_())
    assert "for i.outer  [parallel]" in shown and "for i.inner in 8" in shown
    assert "for j in 64  [vectorize]" in shown and "for k in 32  [reduce]" in shown
    assert shown.index("i.outer") < shown.index("product:") < shown.index("i.inner")
    assert "split" in shown
    loops = tvm.lower(schedule, arguments)
    assert "T.parallel" in read(loops._repr_html_()) and "T.parallel" in read(loops["main"]._repr_html_())
    assert "T.parallel" in read(tvm.tir.Schedule(loops["main"])._repr_html_())


def test_inlined_stages_are_named():
    """They have no loops of their own."""
    x = te.placeholder((8,), name="x")
    double = te.compute((8,), lambda i: x[i] * 2.0, name="double")
    result = te.compute((8,), lambda i: double[i] + 1.0, name="result")
    schedule = te.create_schedule(result.op)
    schedule[double].compute_inline()
    assert "inlined: double" in read(schedule._repr_html_())


def test_compiled_models_show_what_they_are():
    """Libraries, executors, sessions and programs of the virtual machine, with inputs, memory and kernels."""
    x = relay.var("picture", shape=(2, 3), dtype="float32")
    module = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    library = relay.build(module, "llvm")
    assert "llvm" in read(library._repr_html_()) and "fused_exp" in read(library.lib._repr_html_())
    executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    shown = read(executor._repr_html_())
    assert "picture" in shown and "2, 3" in shown
    assert "picture" in read(library.session()._repr_html_())
    program = vm.compile(module, "llvm")
    assert "@main" in read(program._repr_html_()) and "picture" in read(program._repr_html_())
    assert "1 kernels" in read(VirtualMachine(program, tvm.cpu(0))._repr_html_())


def test_times_and_reports_are_tables():
    """The unit suits the times; the slowest run comes first, with a bar."""
    assert "20 ms" in read(BenchmarkResult([0.02, 0.02])._repr_html_()).replace("\n", "")
    report = Report([NodeRun(0, "fast", "f_fast", 0.0, 1e-6), NodeRun(1, "slow", "f_slow", 1e-6, 3e-6)])
    page = report._repr_html_()
    shown = read(page)
    assert shown.index("f_slow") < shown.index("f_fast") and "75.0%" in shown and "width:60px" in page
    assert np.isclose(report.total_seconds, 4e-6)
