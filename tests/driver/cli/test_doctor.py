"""``tilewright doctor``: what it finds, and what makes it fail."""

import json

from tilewright.driver.cli import doctor, main
from tilewright.support.errors import RuntimeFailure
from tilewright.target import describe_cpu
from tilewright.target.measured import LevelRate, MeasuredCPU


def test_doctor_finds_this_machine_healthy(capsys):
    """The report has the processor, the compiler infrastructure and a self-test that passes."""
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["healthy"] is True
    found = {(finding["area"], finding["name"]): finding for finding in report["findings"]}
    assert found["processor", describe_cpu("llvm").name]["status"] == "ok"
    assert "llvmlite" in found["software", "LLVM"]["detail"]
    assert "agrees with NumPy" in found["self-test", "compile and run"]["detail"]
    assert {finding["area"] for finding in report["findings"]} >= {"runtime", "package", "gpu", "compiler"}
    assert found["format", "onnx"]["detail"] == ".onnx"


def test_doctor_prints_a_table(capsys):
    """Without ``--json``, every finding is a line."""
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "everything required works" in printed
    assert "caches" in printed


def test_measurement_is_kept_and_shown(capsys, monkeypatch, tmp_path):
    """``--measure`` keeps the rates of this machine, which later reports show; before, they say how to measure."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    measured = MeasuredCPU(
        processor="made up",
        cores=4,
        vector_bits=256,
        cycles_per_second=2e9,
        flops_one_core=60e9,
        flops_all_cores=235e9,
        fma_latency=2e-9,
        panel_bytes=40e9,
        dispatch_seconds=1.5e-6,
        levels=(LevelRate("L1", 100e9, 390e9), LevelRate("memory", 12e9, 31e9)),
    )
    monkeypatch.setattr(doctor, "measure_machine", lambda: measured)
    assert "doctor --measure" in doctor._rates()[1]
    assert main(["doctor", "--measure"]) == 0
    printed = capsys.readouterr().out
    assert "60 GFLOP/s on one core, 235 on 4, at 2.00 GHz; a parallel loop costs 1.50 µs" in printed
    assert doctor._bandwidths()[1] == "GB/s on one core (on all): L1 100 (390), memory 12 (31)"


def test_failing_check_makes_the_exit_code_one(monkeypatch, capsys):
    """What must work and does not is named, and scripts can tell from the exit code."""

    def broken():
        raise RuntimeFailure("the sky fell")

    monkeypatch.setattr(doctor, "_self_test", broken)
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["healthy"] is False
    assert report["findings"][-1] == {
        "area": "self-test",
        "name": "broken",
        "status": "failed",
        "detail": "the sky fell",
    }


def test_missing_packages_come_with_advice(monkeypatch):
    """A package that is not installed is missing, not failed, and the line says how to get it."""
    monkeypatch.setattr(doctor, "_PACKAGES", (("no_such_package_here", "cross", "nothing"),))
    (finding,) = doctor._packages()
    assert finding.status == "missing"
    assert finding.detail == 'nothing: pip install "tilewright[cross]"'


def test_no_compiler_is_said(monkeypatch):
    """Without any C compiler, the report tells what cannot be done, and how to mend it."""
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor, "zig_command", lambda: None)
    (finding,) = doctor._compilers()
    assert finding.status == "missing"
    assert "tilewright[cross]" in finding.detail
