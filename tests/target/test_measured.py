"""Measurements of this machine, and the description that is made of them."""

import json
from dataclasses import asdict

import pytest

from tilewright.target import describe_cpu
from tilewright.target.cpu_models import MODELS
from tilewright.target.measured import FOLDER, LevelRate, MeasuredCPU, keep_measurement, kept_measurement


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    return tmp_path


def made_up(vector_bits: int) -> MeasuredCPU:
    """A machine with three units of a latency of five cycles at two gigahertz."""
    lanes = vector_bits // 32
    return MeasuredCPU(
        processor="made up",
        cores=4,
        vector_bits=vector_bits,
        cycles_per_second=2e9,
        flops_one_core=2.9 * 2 * lanes * 2e9,
        flops_all_cores=11e9 * lanes,
        fma_latency=2.6e-9,
        panel_bytes=48.04e9,
        dispatch_seconds=3e-6,
        levels=(LevelRate("L2", 60e9, 240e9), LevelRate("L3", 30e9, 80e9), LevelRate("memory", 12e9, 32e9)),
    )


def test_costs_come_from_the_measurement(folder):
    """Rates become bytes and operations a cycle, to two digits, so that noise does not change the code."""
    before = describe_cpu("llvm")
    assert kept_measurement() is None
    assert (before.l2_bytes_per_cycle, before.memory_bytes_per_cycle, before.parallel_work) == (16, 6, 65536)
    measured = made_up(before.vector_bits)
    path = keep_measurement(measured)
    assert path.is_relative_to(folder / FOLDER) and kept_measurement() == measured
    after = describe_cpu("llvm")
    assert (after.l2_bytes_per_cycle, after.memory_bytes_per_cycle) == (24.0, 4.0)
    assert (before.l3_bytes_per_cycle, after.l3_bytes_per_cycle) == (12, 10)
    assert after.parallel_work == pytest.approx(6000 * before.lanes(32), rel=0.05)
    assert (measured.fma_units, measured.fma_latency_cycles) == (3, 5)
    if before.name in MODELS[before.family]:
        assert (after.fma_units, after.fma_latency) == (before.fma_units, before.fma_latency)


def test_other_machines_are_not_described_by_it(folder):
    """Another CPU, and this one with narrower vectors, keep the costs that nobody measured."""
    bits = describe_cpu("llvm").vector_bits
    others = ("llvm -mcpu=cortex-a72", "llvm -mcpu=haswell")
    before = [describe_cpu(other) for other in others]
    keep_measurement(made_up(bits))
    assert [describe_cpu(other) for other in others] == before
    keep_measurement(made_up(2 * bits))
    assert describe_cpu("llvm").parallel_work == 65536


@pytest.mark.parametrize(
    "damage",
    [
        lambda said: "not JSON",
        lambda said: json.dumps({**said, "panel_bytes": 0}),
        lambda said: json.dumps({**said, "fma_latency": float("nan")}),
        lambda said: json.dumps({**said, "levels": []}),
        lambda said: json.dumps({**said, "panel_bytes": "fast"}),
        lambda said: json.dumps({name: value for name, value in said.items() if name != "cores"}),
        lambda said: "[]",
    ],
)
def test_damaged_measurements_count_as_missing(folder, damage):
    """What is no measurement changes nothing."""
    measured = made_up(describe_cpu("llvm").vector_bits)
    path = keep_measurement(measured)
    path.write_text(damage(asdict(measured)))
    assert kept_measurement() is None
    assert describe_cpu("llvm").parallel_work == 65536
