"""The measurement of this machine."""

from tilewright.codegen.llvm.measurement import measure_machine
from tilewright.target import describe_cpu
from tilewright.target.host import host_cores


def test_the_measurement_is_plausible():
    """A clock between 0.2 and 8 GHz, a latency of a few cycles, a panel no faster than vectors are loaded, and a
    parallel loop that costs less than a millisecond."""
    cpu, measured = describe_cpu("llvm"), measure_machine()
    assert (measured.vector_bits, measured.cores) == (cpu.vector_bits, host_cores())
    assert 2e8 < measured.cycles_per_second < 8e9
    assert 1 <= measured.fma_latency_cycles <= 20 and 1 <= measured.fma_units <= 8
    assert 0.1 < measured.l2_bytes_per_cycle < 4 * cpu.vector_bits // 8
    assert 0 < measured.dispatch_seconds < 1e-3
    assert measured.levels[-1].level == "memory"
    assert all(level.one_core > 1e8 and level.all_cores > 1e8 for level in measured.levels)
