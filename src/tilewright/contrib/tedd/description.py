"""A schedule as plain data for pictures: stages, axes, relations and tensors, each with its place as its name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.expr import IterVar
from tilewright.te.schedule.bounds import infer_bound
from tilewright.te.schedule.relations import Fuse, Rebase, Singleton, Split
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import AttachType, Stage
from tilewright.te.tensor import Tensor

Path = Sequence[int]
"""The number of a stage and, within it, that of an axis, a tensor or a relation."""

_ENDS: dict[type, tuple[str, Mapping[str, str], Mapping[str, str]]] = {
    Split: ("Split", {"Input": "parent"}, {"Outer": "outer", "Inner": "inner"}),
    Fuse: ("Fuse", {"Outer": "outer", "Inner": "inner"}, {"Fused": "fused"}),
    Rebase: ("Rebase", {"Parent": "parent"}, {"Rebased": "rebased"}),
    Singleton: ("Singleton", {}, {"Iter": "iter"}),
}
"""For each kind of relation its name, and the ports of its inputs and outputs with the fields that they show."""


def dom_path_to_string(dom_path: Path, prefix: str = "") -> str:
    """A place as a name: ``Stage_1``, ``IterVar_1_2``."""
    return "_".join([prefix, *(str(index) for index in dom_path)])


class ObjectManager:
    """The places of a schedule's stages, axes and tensors."""

    def __init__(self, sch: Schedule) -> None:
        self._places: dict[Any, tuple[int, ...]] = {}
        for number, stage in enumerate(sch.stages):
            self._places[stage] = (number,)
            for index, axis in enumerate(stage.all_iter_vars):
                self._places[axis] = (number, index)
            for index in range(stage.op.num_outputs):
                self._places[stage.op.outputs[index]] = (number, index)

    def get_dom_path(self, obj: Any) -> tuple[int, ...] | None:
        """The place of an object; None of one that the schedule does not have."""
        return self._places.get(obj)


def get_port_id(is_input: bool, index: int) -> str:
    """The port of a stage's input or output: ``I_0``, ``O_0``."""
    return f"{'I' if is_input else 'O'}_{index}"


def extract_dom_for_viz(sch: Schedule, need_range: bool = True) -> dict[str, Any]:
    """The description of a schedule; with ranges, which need a schedule that is complete."""
    places = ObjectManager(sch)
    ranges = infer_bound(sch.normalize()) if need_range else {}
    described = {
        "type": "Schedule",
        "name": "schedule",
        "stages": [_stage(stage, places, ranges) for stage in sch.stages],
    }
    insert_dot_id(described)
    return described


def _stage(stage: Stage, places: ObjectManager, ranges: Mapping[IterVar, Any]) -> dict[str, Any]:
    body = getattr(stage.op, "body", None)
    placed = stage.attach_spec()
    attach: Any = None
    if placed.attach_type == AttachType.SCOPE and placed.attach_stage is not None:
        attach = list(places.get_dom_path(placed.attach_ivar) or ())
    return {
        "type": "Stage",
        "path": list(places.get_dom_path(stage) or ()),
        "name": stage.label,
        "scope": stage.scope,
        "inlined": placed.attach_type in (AttachType.INLINE, AttachType.INLINED_ALREADY),
        "attaching_to": attach,
        "op": f"[{', '.join(str(one) for one in body)}]"
        if isinstance(body, (list, tuple))
        else stage.op.name,
        "all_itervars": [_axis(stage, axis, places, ranges) for axis in stage.all_iter_vars],
        "leaf_itervars": [stage.all_iter_vars.index(axis) for axis in stage.leaf_iter_vars],
        "relations": [
            _relation(one, number, places) for number, one in enumerate(stage.relations) if type(one) in _ENDS
        ],
        "input_tensors": [_tensor(one, places) for one in stage.op.input_tensors],
        "output_tensors": [_tensor(stage.op.outputs[index], places) for index in range(stage.op.num_outputs)],
    }


def _axis(
    stage: Stage, axis: IterVar, places: ObjectManager, ranges: Mapping[IterVar, Any]
) -> dict[str, Any]:
    attributes = stage.attributes(axis)
    thread = attributes.bind_thread
    found = ranges.get(axis)
    return {
        "type": "IterVar",
        "path": list(places.get_dom_path(axis) or ()),
        "name": axis.var.name,
        "itervar_type": attributes.iter_type,
        "thread": thread.thread_tag if thread is not None else axis.thread_tag,
        "tensor_intrin": None if attributes.tensor_intrin is None else str(attributes.tensor_intrin),
        "range": None if found is None else f"range(min={found.min}, ext={found.extent})",
    }


def _relation(relation: Any, number: int, places: ObjectManager) -> dict[str, Any]:
    kind, inputs, outputs = _ENDS[type(relation)]

    def at(ports: Mapping[str, str]) -> dict[str, Any]:
        return {
            port: list(places.get_dom_path(getattr(relation, field)) or ()) for port, field in ports.items()
        }

    return {
        "type": f"{kind}_Relation",
        "kind": kind,
        "number": number,
        "inputs": at(inputs),
        "outputs": at(outputs),
    }


def _tensor(tensor: Tensor, places: ObjectManager) -> dict[str, Any]:
    return {
        "type": "Tensor",
        "path": list(places.get_dom_path(tensor) or ()),
        "name": str(tensor.op.name),
        "shape": f"[{', '.join(str(extent) for extent in tensor.shape)}]",
        "data_type": str(tensor.dtype),
    }


def get_or_create_dot_id(obj: dict[str, Any], prefix: str = "", assert_on_missing: bool = False) -> str:
    """The name of a described object in the picture, which is its place."""
    if "dot_id" not in obj:
        if assert_on_missing:
            raise KeyError(
                f"{obj.get('name', 'an object')} has no name in the picture: insert_dot_id gives them"
            )
        obj["dot_id"] = dom_path_to_string(obj["path"], prefix or obj["type"])
    return str(obj["dot_id"])


def insert_dot_id(sch: dict[str, Any]) -> None:
    """Give every described object its name in the picture."""
    for stage in sch["stages"]:
        get_or_create_dot_id(stage)
        for part in (*stage["all_itervars"], *stage["input_tensors"], *stage["output_tensors"]):
            get_or_create_dot_id(part)
        for relation in stage["relations"]:
            relation["dot_id"] = dom_path_to_string([*stage["path"], relation["number"]], relation["type"])


def leaf_itervars(stage: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The described loops of a stage, outermost first."""
    return [stage["all_itervars"][index] for index in stage["leaf_itervars"]]


def dump_json(sch: Schedule, need_range: bool) -> str:
    """The description as JSON."""
    return json.dumps(extract_dom_for_viz(sch, need_range), indent=1)
