"""What is found out about this machine."""

import os

from tilewright.target import host


def test_caches_are_read_from_the_kernel(tmp_path):
    """Each ``index`` folder is one cache; instruction caches and unreadable entries are passed over."""
    entries = [
        ("1", "Data", "48K"),
        ("1", "Instruction", "32K"),
        ("2", "Unified", "2M"),
        ("3", "Unified", "bad"),
    ]
    for index, (level, kind, size) in enumerate(entries):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size), ("coherency_line_size", "64")):
            (folder / name).write_text(value + "\n")
    assert host._caches_from_sysfs(tmp_path) == {"l1d": 48 << 10, "l2": 2 << 20, "line": 64}
    assert host._caches_from_sysfs(tmp_path / "absent") == {}


def test_cores_respect_affinity_and_container(tmp_path, monkeypatch):
    """No more cores than the process may run on, nor than the container's share of time."""
    host.host_cores.cache_clear()
    limit = tmp_path / "cpu.max"
    monkeypatch.setattr(host, "_CGROUP_LIMIT", limit)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    try:
        for text, cores in (
            ("max 100000", 8),
            ("250000 100000", 3),
            ("50000 100000", 1),
            ("9900000 100000", 8),
        ):
            limit.write_text(text)
            host.host_cores.cache_clear()
            assert host.host_cores() == cores
    finally:
        host.host_cores.cache_clear()


def test_older_containers_limit_cores_too(tmp_path, monkeypatch):
    """The first version of control groups keeps the limit in two files; -1 means none."""
    monkeypatch.setattr(host, "_CGROUP_LIMIT", tmp_path / "absent")
    monkeypatch.setattr(host, "_OLD_CGROUP", tmp_path)
    (tmp_path / "cpu.cfs_quota_us").write_text("200000\n")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")
    assert host._cgroup_quota() == 2.0
    (tmp_path / "cpu.cfs_quota_us").write_text("-1\n")
    assert host._cgroup_quota() is None


def test_features_without_llvm_come_from_the_kernel():
    """Linux's names become LLVM's."""
    x86 = "model name\t: x\nflags\t\t: fpu sse4_1 pni avx2 fma avx512f avx512_vnni amx_tile\n"
    assert host._features_from_kernel(x86) == {
        "fpu",
        "sse4.1",
        "sse3",
        "avx2",
        "fma",
        "avx512f",
        "avx512vnni",
        "amx-tile",
    }
    assert {"neon", "dotprod"} <= host._features_from_kernel("Features\t: fp asimd asimddp\n")
    assert host._features_from_kernel("") == frozenset()
