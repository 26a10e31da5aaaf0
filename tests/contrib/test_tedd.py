"""Pictures of schedules, as text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tilewright import te, topi
from tilewright.contrib import tedd
from tilewright.support.errors import TilewrightError


def test_the_flow_of_tensors() -> None:
    """An edge from each stage to its tensor, and from the tensor to each reader's port."""
    data = te.placeholder((8, 16), name="A")
    text = tedd.viz_dataflow_graph(te.create_schedule(topi.nn.softmax(data).op), output_dot_string=True)
    assert text.startswith('digraph "Dataflow Graph" {')
    for edge in ("Stage_0:O_0 -> Tensor_0_0", "Tensor_0_0 -> Stage_1:I_0", "Tensor_2_0 -> Stage_4:I_0"):
        assert edge in text


def test_the_relations_of_axes() -> None:
    """A split has its ports, and the axes their kinds and symbolic ranges."""
    n, m = te.var("n"), te.var("m")
    data = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    total = te.compute((n,), lambda i: te.sum(data[i, k], axis=k), name="B")
    schedule = te.create_schedule(total.op)
    outer, inner = schedule[total].split(total.op.reduce_axis[0], factor=16)
    schedule[total].fuse(outer, inner)
    text = tedd.viz_itervar_relationship_graph(schedule, output_dot_string=True)
    for part in (
        'digraph "IterVar Relationship Graph"',
        "subgraph cluster_legend",
        "subgraph cluster_Stage_1",
        "(kDataPar)<br/>range(min=0, ext=n)",
        "(kCommReduce)<br/>range(min=0, ext=m)",
        "IterVar_1_1:itervar -> Split_Relation_1_0:Input",
        "Split_Relation_1_0:Outer -> IterVar_1_2:itervar",
        "Split_Relation_1_0:Inner -> IterVar_1_3:itervar",
        "IterVar_1_2:itervar -> Fuse_Relation_1_1:Outer",
        "Fuse_Relation_1_1:Fused -> IterVar_1_4:itervar",
    ):
        assert part in text
    assert text.count("{") == text.count("}")


def test_the_tree_of_stages(tmp_path: Path) -> None:
    """Each stage with its loops; one that is computed within a loop points there."""
    data = te.placeholder((32, 32), name="A")
    first = te.compute((32, 32), lambda bi, bj: data[bi, bj] + 1, name="B")
    second = te.compute((32, 32), lambda ci, cj: first[ci, cj] * 2, name="C")
    schedule = te.create_schedule(second.op)
    shared = schedule.cache_read(data, "shared", [first])
    schedule[first].vectorize(first.op.axis[1])
    schedule[first].compute_at(schedule[second], second.op.axis[0])
    schedule[second].bind(second.op.axis[0], te.thread_axis("blockIdx.x"))
    path = tmp_path / "tree.dot"
    text = tedd.viz_schedule_tree(schedule, dot_file_path=str(path), output_dot_string=True)
    assert path.read_text() == text and shared.op.name == "A.shared"
    assert re.search(
        r"Stage_1 .*A\.shared<br/>Scope: shared.+>0<.+ax0\(kDataPar\).+>1<.+ax1\(kDataPar\)", text
    )
    assert re.search(r"bj\(kVectorized\)", text) and "bound to blockIdx.x" in text and "label=ROOT" in text
    assert re.search(r'Stage_2:stage -> Stage_3:IterVar_3_0 \[color="#000000"\]', text)
    assert re.search(r'Stage_1:stage -> ROOT \[color="#000000"\]', text)


def test_the_description() -> None:
    """As JSON, with the names that the pictures use."""
    data = te.placeholder((4,), name="A")
    schedule = te.create_schedule(te.compute((4,), lambda i: data[i] + 1, name="B").op)
    stages = json.loads(tedd.dump_json(schedule, need_range=True))["stages"]
    assert [one["dot_id"] for one in stages] == ["Stage_0", "Stage_1"]
    assert stages[1]["all_itervars"][0]["range"] == "range(min=0, ext=4)"
    assert tedd.linebrk("abcde", 2) == "ab<br/>cd<br/>e" and tedd.get_port_id(True, 3) == "I_3"


def test_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Graphviz gives is the picture, in a notebook too; its complaints are ours."""
    program = tmp_path / "dot"
    program.write_text(
        '#!/bin/sh\nread line\ncase "$line" in digraph*) echo "<svg/>";; *) echo bad >&2; exit 1;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tedd.dump_graph("digraph {}\n")._repr_svg_() == "<svg/>\n"
    with pytest.raises(TilewrightError, match="did not draw the picture: bad"):
        tedd.dump_graph("nonsense\n")


def test_drawing_needs_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the text is still there, and the error says so."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TilewrightError, match="dot was not found: install Graphviz"):
        tedd.dump_graph("digraph {}", show_svg=True)
