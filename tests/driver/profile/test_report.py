"""The report: one file, safe with whatever a model calls its nodes, and alive in a real browser."""

import base64
import gzip
import json
import re
from dataclasses import replace

import pytest

from tilewright.driver import profile
from tilewright.driver.profile.report import embedded_json, packed, report_data, report_html
from tilewright.ir.module import IRModule
from tilewright.relay.backend.byoc.report import Part, Partition, Refusal

EVIL = "</script><img src=x onerror=alert(1)><!-- \" ' & \u2028 {{DATA}}"


@pytest.fixture(scope="module")
def report_url(small_profile, tmp_path_factory):
    """The address of the small model's report."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    profile.report.write_report(small_profile, path)
    return path.as_uri()


def test_one_file_that_loads_nothing(small_profile):
    """No address of another file or host is in the page's own parts, and every mark of the template is filled."""
    page = report_html(small_profile)
    frame = re.sub(r'<script type="application/json" id="data">.*?</script>', "", page, flags=re.S)
    assert "{{" not in frame.replace("${{", "")
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", frame)
    assert set(re.findall(r"https?://[^\s\"'`)]+", frame)) == {"http://www.w3.org/2000/svg"}


def test_data_reads_back(small_profile):
    """What is embedded is the data, whatever it holds."""
    page = report_html(small_profile)
    text = re.search(r'id="data">(.*?)</script>', page, re.S).group(1)
    assert json.loads(text) == json.loads(json.dumps(report_data(small_profile)))
    assert json.loads(embedded_json({"name": EVIL})) == {"name": EVIL}
    assert not set(embedded_json({"name": EVIL})) & set("<>&")


def test_code_is_packed():
    """The page unpacks gzip in base64."""
    assert gzip.decompress(base64.b64decode(packed("für i in 0"))).decode() == "für i in 0"


def test_report_opens_without_errors(page, report_url, small_profile):
    """A browser draws every part, writes nothing to the console, and asks for no other file."""
    page.open(report_url)
    kernels = small_profile.kernels.kernels()
    assert page.evaluate("document.querySelectorAll('#kernel-table tr[data-kernel]').length") == len(kernels)
    assert page.evaluate("document.querySelectorAll('#roofline-chart .dot').length") == sum(
        bool(kernel.flops) for kernel in kernels
    )
    assert page.evaluate("document.querySelectorAll('#memory-chart .block').length") == len(
        small_profile.memory.blocks
    )
    assert page.evaluate("document.querySelectorAll('#canvas .node').length") == len(
        small_profile.after_fusion.nodes
    )
    assert page.evaluate("document.querySelectorAll('.pass').length") > 5
    assert page.evaluate("document.title") == "small.onnx · Tilewright profile"
    assert page.problems == []
    assert page.requests == [report_url]


def test_search_and_zoom(page, report_url):
    """Searching marks the nodes that match and dims the rest; Enter goes on to the next; buttons zoom."""
    page.open(report_url)
    page.click("#graph-choice [data-graph=before]")
    page.type("#search", "RELU")
    assert page.evaluate("document.querySelectorAll('#canvas .node.match').length") == 1
    assert page.evaluate("document.getElementById('matches').textContent") == "1 of 1"
    assert "relu" in page.evaluate("document.querySelector('.node.current').textContent").lower()
    page.press("Enter")
    before = page.evaluate("document.querySelector('#canvas g').getAttribute('transform')")
    page.click("#zoom-in")
    assert page.evaluate("document.querySelector('#canvas g').getAttribute('transform')") != before
    page.click("#zoom-fit")
    page.type("#search", " nothing has this")
    assert page.evaluate("document.getElementById('matches').textContent") == "0"
    assert page.problems == []


def test_click_shows_the_code(page, report_url, small_profile):
    """A row, and a node of the graph, open their kernel's code in every form; Escape closes it."""
    page.open(report_url)
    page.click("#kernel-table [data-kernel='0'] button")
    first = small_profile.kernels.kernels()[0]
    assert page.evaluate("document.getElementById('drawer').hidden") is False
    page.wait("document.getElementById('code').textContent.includes('fn (')")
    for form in ("tir", "ll", "asm"):
        page.click(f"#code-forms [data-form={form}]")
        page.wait(f"document.getElementById('code').dataset.shown === '{form}'")
        assert (
            page.evaluate("document.getElementById('code').textContent")
            == small_profile.code[first.name][form]
        )
    page.press("Escape")
    assert page.evaluate("document.getElementById('drawer').hidden") is True
    page.click("#canvas .node.kernel .body")
    assert page.evaluate("document.getElementById('drawer').hidden") is False
    assert page.evaluate("document.querySelectorAll('#canvas .node.chosen').length") >= 1
    assert page.problems == []


def test_names_from_a_model_stay_text(page, small_profile, tmp_path):
    """A node called like markup is shown as it is called; nothing of it runs."""
    kernels = small_profile.kernels
    steps = tuple(replace(step, model_nodes=(EVIL,)) for step in kernels.steps)
    nodes = tuple(replace(node, label=EVIL, model_nodes=(EVIL,)) for node in small_profile.after_fusion.nodes)
    hostile = replace(
        small_profile,
        model=EVIL,
        kernels=replace(kernels, steps=steps),
        after_fusion=replace(small_profile.after_fusion, nodes=nodes),
        code={name: {form: EVIL for form in code} for name, code in small_profile.code.items()},
    )
    path = tmp_path / "hostile.html"
    profile.report.write_report(hostile, path)
    page.open(path.as_uri())
    page.click("#kernel-table [data-kernel='0'] button")
    page.wait("document.getElementById('code').textContent.length > 0")
    assert page.evaluate("document.getElementById('model').textContent") == EVIL
    assert page.evaluate("document.getElementById('code').textContent") == EVIL
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.problems == [] and page.requests == [path.as_uri()]


def test_report_of_a_package_leaves_out_what_it_lacks(page, small_profile, tmp_path):
    """Without passes, code and the graph before fusion, those parts are not shown."""
    path = tmp_path / "package.html"
    profile.report.write_report(replace(small_profile, before_fusion=None, compiling=None, code=None), path)
    page.open(path.as_uri())
    assert page.evaluate("document.getElementById('compile').hidden") is True
    assert page.evaluate("document.querySelectorAll('#graph-choice button').length") == 1
    page.click("#kernel-table [data-kernel='0'] button")
    assert page.evaluate("document.getElementById('code').hidden") is True
    assert page.problems == []


@pytest.mark.parametrize(("width", "mobile"), [(1280, False), (390, True)])
def test_page_fits_its_window(page, report_url, width, mobile):
    """On a desk and on a phone nothing but tables and the graph is wider than the window."""
    page.open(report_url, width, 844, mobile)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.screenshot().startswith(b"\x89PNG")
    page.resize(1280, 900)


def test_choices_of_every_kernel(small_profile):
    """The report has the row and the reason of every operator; one of a package has no such section."""
    found = report_data(small_profile)["choices"]
    assert len(found) == len(small_profile.kernels.kernels())
    assert all(one["row"] and one["reason"] for kernel in found for one in kernel["operators"])
    assert report_data(replace(small_profile, choices=None))["choices"] is None


def test_choices_are_a_section_of_the_page(page, report_url, small_profile):
    """A line for each operator that had other rows, or a row of its own."""
    page.open(report_url)
    shown = [
        one
        for kernel in report_data(small_profile)["choices"]
        for one in kernel["operators"]
        if one["row"] != one["operator"] or one["passed_over"]
    ]
    assert page.evaluate("document.querySelectorAll('#choice-table tr[data-choice]').length") == len(shown)
    assert not page.problems


def test_backends_are_a_section_of_the_page(page, report_url, small_profile, tmp_path):
    """Every part with its times and whether it was taken, and why the rest was not; without backends, nothing."""
    page.open(report_url)
    assert page.evaluate("document.getElementById('backends').hidden")
    partition = Partition(
        IRModule(),
        ("chip", "library"),
        [
            Part("part_0", "chip", ("nn.dense", "nn.dense", "add"), 1e-3, 2e-3, True, "2.00 times as fast"),
            Part("part_1", "library", ("exp",), None, None, False, EVIL),
        ],
        [Refusal("sum", 3, ("chip has no sum", "library: the data type is int8"))],
        {"compiled": 4e-3, "chip": 3e-3},
        "chip",
    )
    path = tmp_path / "backends.html"
    profile.report.write_report(replace(small_profile, partition=partition), path)
    page.open(path.as_uri())
    text = page.evaluate("document.getElementById('backends').innerText")
    for expected in (
        "2 nn.dense, add",
        "2.00 times as fast",
        "chip has no sum",
        "compiled 4 ms, chip 3 ms",
        EVIL[:20],
    ):
        assert expected in text
    assert page.evaluate("document.querySelectorAll('#part-table tbody tr').length") == 2
    assert not page.problems
