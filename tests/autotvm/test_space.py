"""Spaces: what the knobs of a template can be, and what they do to a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import autotvm, te
from tilewright.autotvm.task.constructed.space import ConstructedSpace, Variant
from tilewright.autotvm.task.space import (
    ConfigEntity,
    ConfigSpace,
    FallbackConfigEntity,
    InstantiationError,
    get_factors,
    get_pow2s,
)


def sizes(space: ConfigSpace, name: str) -> list[list[int]]:
    return [entity.size for entity in space.space_map[name].entities]


def test_factors_and_powers() -> None:
    """Divisors in order, and powers of two up to a number that need not be one."""
    assert get_factors(28) == [1, 2, 4, 7, 14, 28]
    assert get_factors(36) == [1, 2, 3, 4, 6, 9, 12, 18, 36]
    assert get_pow2s(28) == [1, 2, 4, 8, 16]


def test_split_policies() -> None:
    """Which inner sizes each policy has for an axis of 6."""
    cfg = ConfigSpace()
    cfg.define_split("factors", 6, num_outputs=2)
    cfg.define_split("power2", 6, policy="power2", num_outputs=2)
    cfg.define_split("verbose", 6, policy="verbose", num_outputs=2)
    cfg.define_split("candidate", 6, policy="candidate", num_outputs=2, candidate=[[-1, 5]])
    assert [size[-1] for size in sizes(cfg, "factors")] == [1, 2, 3, 6]
    assert [size[-1] for size in sizes(cfg, "power2")] == [1, 2, 4]
    assert [size[-1] for size in sizes(cfg, "verbose")] == [1, 2, 3, 4, 6]
    assert sizes(cfg, "candidate") == [[-1, 5]]


def test_split_options() -> None:
    """``max_factor`` and ``filter`` thin a split, ``no_tail`` leaves divisors only, three parts are ordered."""
    cfg = ConfigSpace()
    cfg.define_split("small", 64, num_outputs=2, max_factor=8)
    cfg.define_split("even", 12, num_outputs=2, filter=lambda entity: entity.size[-1] % 2 == 0)
    cfg.define_split("whole", 12, policy="power2", num_outputs=2, no_tail=True)
    cfg.define_split("three", 4, num_outputs=3)
    assert [size[-1] for size in sizes(cfg, "small")] == [1, 2, 4, 8]
    assert [size[-1] for size in sizes(cfg, "even")] == [2, 4, 6, 12]
    assert [size[-1] for size in sizes(cfg, "whole")] == [1, 2, 4]
    assert sizes(cfg, "three") == [[-1, 1, 1], [-1, 2, 1], [-1, 4, 1], [-1, 1, 2], [-1, 2, 2], [-1, 1, 4]]


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (
            lambda cfg: cfg.define_split("x", 8, policy="odd", num_outputs=2),
            "unknown policy 'odd' of a split",
        ),
        (lambda cfg: cfg.define_split("x", 8), "num_outputs"),
        (
            lambda cfg: cfg.define_split("x", 8, policy="candidate", num_outputs=3, candidate=[[1, 8]]),
            "2 parts, but num_outputs is 3",
        ),
        (lambda cfg: cfg.define_split("x", 8, num_outputs=2, filter=lambda _: False), "passes the filter"),
        (lambda cfg: cfg.define_reorder("x", [4, 4], "any"), "unknown policy 'any' of a reorder"),
        (lambda cfg: cfg.define_annotate("x", [4, 4], "try_jump"), "unknown policy 'try_jump'"),
        (lambda cfg: cfg.define_annotate("x", [4], "bind_gpu"), "at least 2 axes"),
        (lambda cfg: cfg.define_knob("x", []), "at least one candidate"),
        (lambda cfg: cfg.define_split("x", "y", num_outputs=2), "not str"),
    ],
)
def test_bad_definitions(define: Callable[[ConfigSpace], Any], message: str) -> None:
    """A definition that means nothing says so."""
    with pytest.raises(InstantiationError, match=message):
        define(ConfigSpace())


def test_reorder_policies() -> None:
    """The orders of each policy."""
    cfg = ConfigSpace()
    axes = [cfg.axis(2) for _ in range(4)]
    cfg.define_reorder("all", axes[:3], "all")
    cfg.define_reorder("middle", axes, "interval_all", interval=(1, 3))
    cfg.define_reorder("given", axes[:2], "candidate", candidate=[[axes[1], axes[0]]])
    cfg.define_reorder("mixed", axes, "interleave", spatial=[axes[:2], axes[2:3]], reduce=[axes[3:]])
    perms = {name: [entity.perm for entity in space.entities] for name, space in cfg.space_map.items()}
    assert len(perms["all"]) == 6
    assert perms["middle"] == [[0, 1, 2, 3], [0, 2, 1, 3]]
    assert perms["given"] == [[1, 0]]
    # The outer part of the first axis, then its inner part, the second axis and the reduction in any order.
    assert len(perms["mixed"]) == 6 and all(perm[0] == 0 for perm in perms["mixed"])


def test_annotate_policies() -> None:
    """The annotations of each policy; at most one axis is a vector."""
    cfg = ConfigSpace()
    axes = [cfg.axis(4) for _ in range(3)]
    cfg.define_annotate("gpu", axes, "bind_gpu")
    cfg.define_annotate("virtual", axes, "bind_gpu_virtual")
    cfg.define_annotate("cache", axes, "locate_cache", num_anchor=2)
    cfg.define_annotate("unroll", axes[:2], "try_unroll")
    cfg.define_annotate("both", axes[:2], "try_unroll_vec")
    anns = {name: [entity.anns for entity in space.entities] for name, space in cfg.space_map.items()}
    assert anns["gpu"] == [["fuse", "blockIdx.x", "threadIdx.x"]]
    assert anns["virtual"] == [["blockIdx.x", "vthread", "threadIdx.x"]]
    assert anns["cache"] == [[0, 1], [0, 2], [1, 2]]
    assert anns["unroll"] == [["none", "none"], ["none", "unroll"], ["unroll", "none"], ["unroll", "unroll"]]
    assert len(anns["both"]) == 8 and ["vec", "vec"] not in anns["both"]


def _tiled_copy(cfg: Any) -> tuple[Any, list[Any]]:
    a = te.placeholder((12, 20), name="a")
    b = te.compute((12, 20), lambda i, j: a[i, j] + 1.0, name="b")
    s = te.create_schedule(b.op)
    y, x = s[b].op.axis
    cfg.define_split("y", y, num_outputs=2)
    cfg.define_split("x", x, policy="verbose", num_outputs=3)
    parts = [*cfg["y"].apply(s, b, y), *cfg["x"].apply(s, b, x)]
    cfg.define_reorder("order", parts, "all")
    parts = cfg["order"].apply(s, b, parts)
    cfg.define_annotate("marks", parts[-2:], "try_unroll_vec")
    cfg["marks"].apply(s, b, parts[-2:])
    return s, [a, b]


def test_every_entity_can_be_applied() -> None:
    """Schedules with random points of all kinds of knobs compute the same."""
    space = ConfigSpace()
    _tiled_copy(space)
    values = np.arange(240, dtype="float32").reshape(12, 20)
    np.random.seed(3)
    for index in space.sample_ints(6):
        s, tensors = _tiled_copy(space.get(index))
        result = tvm.nd.empty((12, 20))
        tvm.build(s, tensors, "llvm")(tvm.nd.array(values), result)
        np.testing.assert_array_equal(result.numpy(), values + 1)


def test_limits_of_annotations_are_reported() -> None:
    """An axis too long to unroll makes the configuration invalid, and the task says so."""
    cfg = ConfigEntity(0, None, {}, [])
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    entity = autotvm.task.AnnotateEntity(["unroll"])
    entity.apply(s, b, list(s[b].op.axis), axis_lens=[64], max_unroll=16, cfg=cfg)
    assert not cfg.valid()
    assert "64 is too long to unroll" in cfg.errors[0]


def test_indices_are_numbers_of_knobs() -> None:
    """The first knob is the lowest digit; indices and digits convert to each other."""
    space = ConfigSpace()
    space.define_knob("a", [1, 2, 3])
    space.define_knob("b", ["x", "y"])
    assert [config.get_other_option() for config in space][4] == {"a": 2, "b": "y"}
    assert len(space) == 6 and all(space.knob2point(space.point2knob(index)) == index for index in range(6))
    with pytest.raises(IndexError, match="the space has 6"):
        space.get(6)


def test_multi_filter() -> None:
    """A filter over several knobs leaves fewer points, and everything that draws points keeps to them."""
    space = ConfigSpace()
    space.define_knob("a", list(range(8)))
    space.define_knob("b", list(range(8)))
    space.multi_filter(filter=lambda config: config["a"].val + config["b"].val == 7)
    assert len(space) == 8 and space.range_length == 64
    drawn = {space.get_rand_index() for _ in range(40)} | set(space.sample_ints(8))
    assert all(space.is_index_valid(index) for index in drawn)
    assert space.subrange_length(0, 32) == sum(index < 32 for index in space.valid_indices())
    first = space.valid_indices()[0]
    assert space.get_next_index(first) == space.valid_indices()[1]
    assert space.get_rand_index(to_exclude=space.valid_indices()) == -1


def test_json_round_trip() -> None:
    """A configuration keeps all kinds of entities in a record's form."""
    space = ConfigSpace()
    _tiled_copy(space)
    space.define_knob("unroll", [0, 512])
    config = space.get(len(space) - 1)
    written = config.to_json_dict()
    assert [kind for _, kind, _ in written["entity"]] == ["sp", "sp", "re", "an", "ot"]
    again = ConfigEntity.from_json_dict(written)
    assert str(again) == str(config) and again.to_json_dict() == written


@pytest.mark.parametrize(
    "entity",
    [["x", "zz", 1], ["x", "sp", 4]],
)
def test_bad_entities_are_refused(entity: list[Any]) -> None:
    """Unknown kinds and values of the wrong type are errors that name the knob."""
    with pytest.raises(InstantiationError, match="'x'"):
        ConfigEntity.from_json_dict({"index": 0, "code_hash": None, "entity": [entity]})


def test_fallback_split() -> None:
    """The largest factors within the limits, innermost first, stay when the template defines the knob again."""
    cfg = FallbackConfigEntity()
    cfg.define_split("tile", cfg.axis(49), num_outputs=3)
    cfg.fallback_split("tile", [-1, 8, 4])
    cfg.define_split("tile", cfg.axis(49), num_outputs=3)
    assert cfg["tile"].size == [7, 7, 1]
    with pytest.raises(RuntimeError, match="has no split"):
        cfg.fallback_split("tile", [-1, 1, 0])


def test_fallback_with_reference_log() -> None:
    """The reference with the most similar tiles is adapted to other lengths of axes."""
    references = []
    for size in ([-1, 7], [-1, 16]):
        entities = {"tile": autotvm.task.SplitEntity(size), "unroll": autotvm.task.OtherOptionEntity(size[1])}
        config = ConfigEntity(0, None, entities, [])
        references.append((autotvm.MeasureInput(None, None, config), None))
    cfg = FallbackConfigEntity()
    cfg.define_split("tile", cfg.axis(32), num_outputs=2)
    cfg.define_knob("unroll", [7, 16])
    cfg.fallback_with_reference_log(references)
    assert cfg["tile"].size == [2, 16] and cfg["unroll"].val == 16


def test_constructed_space_is_a_sum() -> None:
    """Variants have knobs of their own: every index is another configuration, the first is the default."""
    space = ConstructedSpace(
        [
            Variant({"algorithm": 0}, {"tile": (4, 8, 16), "unroll": (1, 2)}),
            Variant({"algorithm": 4}, {"blocks": (1, 2)}),
        ]
    )
    options = [config.get_other_option() for config in space]
    assert len(space) == 8 and space.default_index == 0
    assert options[0] == {"algorithm": 0, "tile": 4, "unroll": 1}
    assert options[6] == {"algorithm": 4, "blocks": 1}
    assert len({str(option) for option in options}) == 8
    assert all(space.knob2point(space.point2knob(index)) == index for index in range(8))
    np.random.seed(0)
    assert all(0 <= space.random_walk(index) < 8 for index in range(8) for _ in range(8))
