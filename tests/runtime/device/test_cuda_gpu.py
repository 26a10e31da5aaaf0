"""The CUDA device: on a real GPU (``pytest -m gpu``), and on a simulated driver by ``test_cuda.py``.

Everything here needs the driver and nothing else; the kernels are written by hand. Tests of exchange with PyTorch need
it with CUDA, and those of time a real clock.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runtime.device.cuda_kernels import base_module, hopper_module
from tests.threads import in_threads

import tilewright as tvm
from tilewright.contrib import graph_executor
from tilewright.contrib.cuda_graph import cuda_graph_executor
from tilewright.driver.cli.devices import cuda_devices, describe_device
from tilewright.runtime import Module
from tilewright.runtime import ndarray as nd
from tilewright.runtime.device import Device, cuda
from tilewright.runtime.device_module import DeviceModule, Kernel
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.loading import ObjectModule
from tilewright.support.cbuild import SOURCES, find_compiler
from tilewright.support.options import cuda_driver

GPU = cuda(0)
IS_MOCK = cuda_driver() is not None

pytestmark = pytest.mark.gpu
if not GPU.exist:
    pytest.skip("there is no NVIDIA GPU with a driver here", allow_module_level=True)
needs_clock = pytest.mark.skipif(IS_MOCK, reason="the simulated driver takes no time")


@pytest.fixture(scope="module")
def kernels() -> DeviceModule:
    """The kernels for every GPU."""
    return base_module()


@pytest.fixture
def torch() -> Any:
    """PyTorch, where it has CUDA."""
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("PyTorch has no CUDA here")
    return found


@pytest.fixture
def stream() -> Iterator[ctypes.c_void_p]:
    """A stream of its own, which the thread uses only if the test says so."""
    made = GPU.create_raw_stream()
    assert made is not None
    yield made
    GPU.set_raw_stream(None)
    GPU.free_raw_stream(made)


def add_on_gpu(kernels: DeviceModule, a: nd.NDArray, b: nd.NDArray, c: nd.NDArray) -> None:
    """c = a + b, a block of one thread for each element."""
    kernels["add"](a, b, c, a.size, 1)


# ---- the device ----


def test_attributes() -> None:
    """They are the driver's."""
    assert GPU.device_name and GPU.device_name != "cuda(0)"
    assert re.fullmatch(r"\d+\.\d", GPU.compute_version or "")
    assert (GPU.multi_processor_count or 0) > 0 and (GPU.max_threads_per_block or 0) >= 1024
    assert GPU.warp_size == 32 and len(GPU.max_thread_dimensions or []) == 3
    assert (GPU.total_global_memory or 0) >= (GPU.available_global_memory or 0) > 0
    assert (GPU.max_dynamic_shared_memory or 0) >= (GPU.max_shared_memory_per_block or 0) >= 49152
    assert (GPU.shared_memory_per_multi_processor or 0) >= (GPU.max_dynamic_shared_memory or 0)
    assert (GPU.l2_cache_bytes or 0) > 1 << 18 and (GPU.max_registers_per_block or 0) >= 32768
    assert (GPU.registers_per_multi_processor or 0) >= 32768
    assert (GPU.threads_per_multi_processor or 0) >= 1024 and (GPU.blocks_per_multi_processor or 0) >= 8
    assert (GPU.memory_bus_bits or 0) > 0 and GPU.memory_clock_rate is not None
    assert isinstance(GPU.driver_version, int) and GPU.driver_version >= 11000
    assert not GPU.host_readable and not cuda(1000).exist


def test_target() -> None:
    """A target for the device names its architecture, with the suffix that Hopper's tensor cores need."""
    target = tvm.target.Target.from_device("cuda")
    number = int((GPU.compute_version or "0").replace(".", ""))
    assert target.attrs["arch"] == f"sm_{number}{'a' if number >= 90 else ''}"
    assert tvm.target.Target.from_device(GPU) == target
    with pytest.raises(tvm.TVMError, match=r"there is no cuda\(1000\) here"):
        tvm.target.Target.from_device(cuda(1000))


# ---- arrays ----


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7, 5), (3, 1, 129)])
def test_arrays(dtype: str, shape: tuple[int, ...]) -> None:
    """An array comes back as it went, of every type and shape."""
    values = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    array = nd.array(values, GPU)
    assert array.device == GPU and array.shape == shape
    np.testing.assert_array_equal(array.numpy(), values)
    np.testing.assert_array_equal(array.copyto(GPU).numpy(), values)
    np.testing.assert_array_equal(array.copyto(tvm.cpu()).numpy(), values)


@pytest.mark.parametrize(
    "size", [1, 3, 65537, (1 << 18) - 1, 1 << 18, (1 << 22) - 1, (1 << 22) + 1, 3 * (1 << 22) + 77]
)
def test_sizes(size: int) -> None:
    """Sizes around those of the staging memory; the source may be written as soon as the copy has returned."""
    values = np.random.default_rng(size).integers(0, 256, size, dtype="uint8")
    source = values.copy()
    array = nd.array(source, GPU)
    source[:] = 0
    second = array.copyto(GPU)
    np.testing.assert_array_equal(second.numpy(), values)


def test_strides() -> None:
    """Elements find their places whatever the order of a NumPy array is, also in a part of memory."""
    values = np.arange(2 * 3 * 4 * 5, dtype="float32").reshape(2, 3, 4, 5)
    for view in (values.transpose(3, 1, 0, 2), values[:, ::2, :, 1:4], values[::-1], values[..., 2]):
        np.testing.assert_array_equal(nd.array(view, GPU).numpy(), view)
    array = nd.empty((3, 2), "float32", GPU)
    array.copyfrom(values[0, 0, :3, :2])
    np.testing.assert_array_equal(array.numpy(), values[0, 0, :3, :2])
    array[:] = 7
    np.testing.assert_array_equal(array.numpy(), np.full((3, 2), 7))


def test_repr_and_scalars() -> None:
    """An array shows its elements."""
    assert "cuda(0)" in repr(nd.array(np.float32(3), GPU)) and "3." in repr(nd.array(np.float32(3), GPU))


def test_memory_is_reused() -> None:
    """What is freed is free, and the next array of its size has it."""
    gc.collect()
    before = GPU.available_global_memory or 0
    for _ in range(50):
        array = nd.empty((1 << 20,), "int8", GPU)
        address = array.memory_range().start
        del array
        again = nd.empty((1 << 20,), "int8", GPU)
        assert again.memory_range().start == address
        del again
    if IS_MOCK:  # other programs of a real machine allocate too
        assert GPU.available_global_memory == before


def test_no_memory_left() -> None:
    """An array that does not fit is a clear error, and everything goes on."""
    total = GPU.total_global_memory or 0
    kept = nd.array(np.arange(5), GPU)
    with pytest.raises(MemoryError, match=rf"cuda\(0\) has no memory for {2 * total} bytes: \d+ of {total}"):
        nd.empty((2 * total,), "int8", GPU)
    free = GPU.available_global_memory or 0
    blocks = []
    with pytest.raises(MemoryError, match=r"cuda\(0\) has no memory for \d+ bytes"):  # noqa: PT012
        for _ in range(30):
            blocks.append(nd.empty((free // 16,), "int8", GPU))
    assert len(blocks) >= 10
    blocks.clear()
    nd.empty((free // 2,), "int8", GPU)  # of what the pool gave up
    np.testing.assert_array_equal(kept.numpy(), np.arange(5))


# ---- code ----


def test_kernels(kernels: DeviceModule) -> None:
    """A kernel adds; values of arguments arrive whatever their types."""
    a, b = (np.random.default_rng(seed).random(1000, dtype="float32") for seed in (1, 2))
    result = nd.empty((1000,), "float32", GPU)
    add_on_gpu(kernels, nd.array(a, GPU), nd.array(b, GPU), result)
    np.testing.assert_array_equal(result.numpy(), a + b)
    shown = nd.empty((6,), "float64", GPU)
    kernels["show_args"](shown, -3, -1000, -(1 << 30), (1 << 40) + 1, 0.5, 1e300)
    np.testing.assert_array_equal(shown.numpy(), [-3, -1000, -(1 << 30), (1 << 40) + 1, 0.5, 1e300])


@pytest.mark.parametrize("shared_bytes", [1024, 48 << 10, 64 << 10, "most"])
def test_shared_memory(kernels: DeviceModule, shared_bytes: int | str) -> None:
    """More than 48 KB of shared memory need nothing but to be asked for."""
    most = (GPU.max_dynamic_shared_memory or 0) - (
        1024 if IS_MOCK else 0
    )  # the mock's kernel has some of its own
    result = nd.empty((256,), "int32", GPU)
    kernels["use_shared"](result, 256, most if shared_bytes == "most" else shared_bytes)
    np.testing.assert_array_equal(result.numpy(), np.arange(255, -1, -1))
    with pytest.raises(ValueError, match=r"use_shared cannot have 1000000 bytes of dynamic shared memory"):
        kernels["use_shared"](result, 256, 1000000)


def test_needs(kernels: DeviceModule) -> None:
    """What a kernel needs, and how many of its blocks run at a time."""
    found = kernels.needs("use_shared", 256, 100 << 10)
    assert found["registers"] > 0 and found["max_threads"] > 0 and found["local_bytes"] >= 0
    shared = GPU.shared_memory_per_multi_processor or 0
    assert found["blocks_per_multi_processor"] == shared // (101 * 1024 + found["shared_bytes"])
    assert (
        kernels.needs("add", 1024)["blocks_per_multi_processor"]
        == (GPU.threads_per_multi_processor or 0) // 1024
    )
    with pytest.raises(ValueError, match="the module has no kernel absent"):
        kernels.needs("absent", 32)


def test_wrong_code(kernels: DeviceModule) -> None:
    """What cannot be loaded or launched is said in the driver's words, and nothing is broken by it."""
    text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n    nonsense.u32 %r0;\n}\n"
    bad = DeviceModule(2, text.encode(), [Kernel("k", ())], type_key="cuda")
    with pytest.raises(RuntimeError, match=r"(?s)could not load a module: CUDA_ERROR_.*compiler says:.*ptx"):
        bad["k"]()
    absent = DeviceModule(2, kernels.image, [Kernel("absent", ())], type_key="cuda")
    with pytest.raises(ValueError, match="the module has no kernel absent"):
        absent["absent"]()
    result = nd.empty((4096,), "int32", GPU)
    with pytest.raises(
        RuntimeError, match=r"could not launch fill on a grid of \(1, 1, 1\) blocks of \(4096"
    ):
        kernels["fill"](result, 1, 1, 4096)
    kernels["fill"](result, 3, 4, 1024)
    np.testing.assert_array_equal(result.numpy(), np.arange(3, 4099))


def test_many_devices_of_one_module(kernels: DeviceModule) -> None:
    """A tensor of another device than the current one is refused."""
    if not cuda(1).exist:
        pytest.skip("there is one GPU only")
    other = nd.empty((4,), "int32", cuda(1))
    with pytest.raises(ValueError, match=r"argument 0 of fill must be on cuda\(0\), not on cuda\(1\)"):
        kernels["fill"](other, 1, 1, 4)
    values = np.arange(1000, dtype="float32")
    there = nd.array(values, GPU).copyto(cuda(1))
    np.testing.assert_array_equal(there.copyto(GPU).numpy(), values)


def test_crash_is_told(tmp_path: Path) -> None:
    """A kernel that crashes is named when somebody waits for the device, which is lost to the process."""
    script = tmp_path / "crash.py"
    script.write_text(
        "import numpy as np\n"
        "import tilewright as tvm\n"
        "from tests.runtime.device.cuda_kernels import base_module\n"
        "kernels = base_module()\n"
        "array = tvm.nd.array(np.arange(4, dtype='int32'), tvm.cuda())\n"
        "kernels['crash']()\n"
        "for attempt in (tvm.cuda().sync, array.numpy):\n"
        "    try:\n"
        "        attempt()\n"
        "    except RuntimeError as error:\n"
        "        print(error)\n"
        "del array\n"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=root,
        env=_paths(root),
    )
    lines = done.stdout.strip().splitlines()
    assert done.returncode == 0 and len(lines) == 2, done.stdout + done.stderr
    for line in lines:
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in line and "the last one that was launched is crash" in line
        assert "start another process" in line


def _paths(root: Path) -> dict[str, str]:
    """The environment with this tree to import from."""
    paths = [str(root), str(SOURCES.parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


# ---- streams and threads ----


def test_streams(kernels: DeviceModule, stream: ctypes.c_void_p) -> None:
    """Work of a stream is done in order, and behind another stream's when that is asked for."""
    slow, result = nd.empty((1,), "int32", GPU), nd.empty((1,), "int32", GPU)
    slow[:] = 0
    other = GPU.create_raw_stream()
    GPU.set_raw_stream(stream)
    assert GPU.raw_stream == stream.value
    kernels["spin"](slow, 20_000_000, 42)
    GPU.order_streams(None, other)
    GPU.set_raw_stream(other)
    slow.copyto(result)
    GPU.sync()
    GPU.set_raw_stream(None)
    assert GPU.raw_stream == 1 and result.numpy() == 42
    GPU.free_raw_stream(other)


def test_memory_freed_in_a_stream(kernels: DeviceModule, stream: ctypes.c_void_p) -> None:
    """Memory that a stream still uses is not given to another stream, and its own gets it at once."""
    GPU.set_raw_stream(stream)
    target = nd.empty((1000,), "int32", GPU)
    address = target.memory_range().start
    kernels["spin"](target, 50_000_000, 1)
    del target
    other = GPU.create_raw_stream()
    GPU.set_raw_stream(other)
    elsewhere = nd.empty((1000,), "int32", GPU)
    assert elsewhere.memory_range().start != address
    GPU.set_raw_stream(stream)
    again = nd.empty((1000,), "int32", GPU)
    assert again.memory_range().start == address
    GPU.set_raw_stream(None)
    GPU.free_raw_stream(other)


def test_threads(kernels: DeviceModule) -> None:
    """Threads with streams of their own, and some without, do not disturb each other."""
    failed: list[BaseException] = []

    def work(index: int) -> None:
        try:
            own = GPU.create_raw_stream() if index % 2 else None
            GPU.set_raw_stream(own)
            generator = np.random.default_rng(index)
            for turn in range(20):
                size = int(generator.integers(1, 50_000))
                a, b = generator.random(size, dtype="float32"), generator.random(size, dtype="float32")
                result = nd.empty((size,), "float32", GPU)
                add_on_gpu(kernels, nd.array(a, GPU), nd.array(b, GPU), result)
                np.testing.assert_array_equal(result.numpy(), a + b, err_msg=f"thread {index}, turn {turn}")
            GPU.set_raw_stream(None)
            if own is not None:
                GPU.free_raw_stream(own)
        except BaseException as error:  # noqa: BLE001 - for the test's own thread
            failed.append(error)

    in_threads(work, range(8))
    assert not failed, failed[0]


# ---- time ----


@needs_clock
def test_time(kernels: DeviceModule) -> None:
    """A kernel of two milliseconds takes two milliseconds, by the device's clock."""
    result = nd.empty((1,), "int32", GPU)
    measured = kernels.time_evaluator("spin", GPU, number=5, repeat=3)(result, 2_000_000, 1)
    assert 1.95e-3 < measured.median < 2.3e-3, measured


@needs_clock
def test_time_as_torch_measures_it(kernels: DeviceModule, torch: Any) -> None:
    """PyTorch's events around the same launches say the same."""
    result = nd.empty((1,), "int32", GPU)
    spin = kernels["spin"]
    # The shortest of several: another program may have the device for a while.
    ours = min(kernels.time_evaluator("spin", GPU, number=20, repeat=5)(result, 500_000, 1).results)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    measured = []
    for _ in range(5):
        start.record()
        for _ in range(20):
            spin(result, 500_000, 1)
        end.record()
        end.synchronize()
        measured.append(start.elapsed_time(end) / 20 * 1e-3)
    theirs = min(measured)
    assert abs(ours - theirs) < 0.1 * theirs, (ours, theirs)


@needs_clock
def test_copies_are_quick() -> None:
    """Pageable memory moves at several GB/s both ways: the staging overlaps."""
    values = np.ones(1 << 28, dtype="uint8")
    array = nd.array(values, GPU)
    begin = time.perf_counter()
    array.copyfrom(values)
    GPU.sync()
    there = time.perf_counter() - begin
    begin = time.perf_counter()
    array.numpy()
    back = time.perf_counter() - begin
    assert there < 0.2 and back < 0.4, (there, back)


# ---- tensor maps, clusters ----


def _is_hopper() -> bool:
    return float(GPU.compute_version or 0) >= 9.0


@pytest.mark.parametrize(("x", "y"), [(0, 0), (32, 8), (64, 32), (80, 36), (4, 3)])
def test_tensor_map(x: int, y: int) -> None:
    """The copy engine reads a box where the description says; outside of the tensor are zeros."""
    if not _is_hopper():
        pytest.skip("tensor maps begin with sm_90")
    tensor = np.arange(40 * 96, dtype="float32").reshape(40, 96) + 1
    memory = nd.array(np.concatenate([np.zeros(1024, "float32"), tensor.ravel()]), GPU)
    module = hopper_module()
    padded = np.pad(tensor, ((0, 8), (0, 32)))
    for _ in range(3):
        module["tma_copy"](memory, x, y, 256)
        box = memory.numpy()[:256].reshape(8, 32)
        np.testing.assert_array_equal(box, padded[y : y + 8, x : x + 32])
    again = DeviceModule.load_from_bytes("device_module", module.save_to_bytes())
    again["tma_copy"](memory, x, y, 256)
    np.testing.assert_array_equal(memory.numpy()[:256].reshape(8, 32), padded[y : y + 8, x : x + 32])


@pytest.mark.parametrize("size", [1, 2, 8, 16])
def test_clusters(size: int) -> None:
    """Blocks are placed together as the launch says; sixteen are more than every device has to take."""
    if not _is_hopper():
        pytest.skip("clusters begin with sm_90")
    result = nd.empty((32,), "int32", GPU)
    module = hopper_module()
    for _ in range(2):  # the second may begin before the first has ended
        module["cluster_size"](result, 32, size)
    np.testing.assert_array_equal(result.numpy(), np.full(32, size))
    with pytest.raises(RuntimeError, match=r"could not launch cluster_size .*in clusters of \(3, 1, 1\)"):
        module["cluster_size"](result, 32, 3)


# ---- graphs ----


@pytest.fixture(scope="module")
def library(kernels: DeviceModule, tmp_path_factory: pytest.TempPathFactory) -> Module:
    """Host functions around the kernels, exported with them as one library and loaded again."""
    folder = tmp_path_factory.mktemp("cuda_host")
    source = Path(__file__).with_name("cuda_host.c")
    flags = ["-O2", "-fPIC", "-fvisibility=hidden", "-I", SOURCES, "-DTILEWRIGHT_EMBEDDED"]
    find_compiler().run([*flags, "-c", source, "-o", folder / "host.o"])
    host = ObjectModule([(folder / "host.o").read_bytes()], "host.o")
    host.import_module(kernels)
    host.export_library(str(folder / "sums.so"))
    loaded: Module = tvm.runtime.load_module(str(folder / "sums.so"))
    return loaded


def make_graph() -> str:
    """z = (x + w) + w + w, over two nodes."""

    def operator(name: str, function: str, *inputs: int) -> dict[str, Any]:
        return {
            "op": "tvm_op",
            "name": name,
            "attrs": {"func_name": function, "num_outputs": "1", "flatten_data": "0"},
            "inputs": [[node, 0, 0] for node in inputs],
        }

    return json.dumps(
        {
            "nodes": [
                {"op": "null", "name": "x", "inputs": []},
                {"op": "null", "name": "w", "inputs": []},
                operator("y", "sum", 0, 1),
                operator("z", "sum_twice", 2, 1),
            ],
            "arg_nodes": [0, 1],
            "heads": [[3, 0, 0]],
            "node_row_ptr": [0, 1, 2, 3, 4],
            "attrs": {
                "shape": ["list_shape", [[100]] * 4],
                "dltype": ["list_str", ["float32"] * 4],
                "storage_id": ["list_int", [0, 1, 2, 3]],
            },
        }
    )


X = np.arange(100, dtype="float32")
W = np.linspace(-1, 1, 100, dtype="float32")


def expected(x: np.ndarray[Any, Any], w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the graph computes, in its order."""
    result: np.ndarray[Any, Any] = ((x + w) + w) + w
    return result


def test_graph_is_recorded(library: Module) -> None:
    """From the second run on, a run is one launch; inputs may change, and memory of inputs too."""
    executor = GraphExecutor(make_graph(), library, GPU)
    model = graph_executor.GraphModule(executor)
    model.set_input("w", W)
    for turn in range(4):
        model.run(x=X + turn)
        np.testing.assert_array_equal(model.get_output(0).numpy(), expected(X + turn, W))
        assert executor.is_recorded == (turn > 0)
    other = nd.array(X * 2, GPU)
    model.set_input_zero_copy("x", other)
    assert not executor.is_recorded
    for turn in range(3):
        other.copyfrom(X * turn)
        model.run()
        np.testing.assert_array_equal(model.get_output(0).numpy(), expected(X * turn, W))
        assert executor.is_recorded == (turn > 0)
    junk = [nd.array(np.full(100, -1, "float32"), GPU) for _ in range(20)]  # not in the recording's memory
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), expected(X * 2, W))
    assert all((array.numpy() == -1).all() for array in junk)
    np.testing.assert_array_equal(model.debug_get_output("y").numpy(), X * 2 + W)
    executor.set_recording(False)
    model.run()
    assert not executor.is_recorded
    np.testing.assert_array_equal(model.get_output(0).numpy(), expected(X * 2, W))


def test_graph_in_streams(library: Module, stream: ctypes.c_void_p) -> None:
    """A recording runs in the stream that is current when it is launched."""
    executor = GraphExecutor(make_graph(), library, GPU)
    for current in (None, stream, None, stream):
        GPU.set_raw_stream(current)
        executor.set_input("x", X)
        executor.set_input("w", W)
        executor.run()
        np.testing.assert_array_equal(executor.get_output(0).numpy(), expected(X, W))
    assert executor.is_recorded
    GPU.set_raw_stream(None)


def test_recording_can_be_turned_off(library: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a variable of the environment."""
    monkeypatch.setenv("TILEWRIGHT_NO_CUDA_GRAPH", "1")
    executor = GraphExecutor(make_graph(), library, GPU)
    executor.set_input("x", X)
    executor.set_input("w", W)
    for _ in range(3):
        executor.run()
    assert not executor.is_recorded
    np.testing.assert_array_equal(executor.get_output(0).numpy(), expected(X, W))


def test_contrib_cuda_graph(library: Module) -> None:
    """TVM's names for the same."""
    model = cuda_graph_executor.create(make_graph(), library, GPU)
    assert isinstance(model, cuda_graph_executor.GraphModuleCudaGraph)
    with pytest.raises(RuntimeError, match=r"call capture_cuda_graph\(\) first"):
        model.run_cuda_graph()
    model.set_input(x=X, w=W)
    model.capture_cuda_graph()
    assert model.cuda_graph_captured
    model.run_cuda_graph()
    np.testing.assert_array_equal(model.get_output(0).numpy(), expected(X, W))
    model.run(x=X + 1)
    np.testing.assert_array_equal(model.get_output(0).numpy(), expected(X + 1, W))
    with pytest.raises(NotImplementedError, match="runs as a whole"):
        model.debug_get_output("y")
    fresh = cuda_graph_executor.create(make_graph(), library, GPU)
    fresh.run(x=X, w=W)
    assert fresh.cuda_graph_captured
    np.testing.assert_array_equal(fresh.get_output(0).numpy(), expected(X, W))


@needs_clock
def test_recording_is_quicker(library: Module) -> None:
    """One launch costs less of the host's time than one for each kernel."""
    executor = GraphExecutor(make_graph(), library, GPU)
    executor.set_input("x", X)
    executor.set_input("w", W)
    executor.set_recording(False)
    plain = executor.time_evaluator("run", GPU, number=500, repeat=5)().median
    executor.set_recording(True)
    recorded = executor.time_evaluator("run", GPU, number=500, repeat=5)().median
    assert executor.is_recorded and recorded < plain * 1.5, (plain, recorded)


# ---- exchange with other libraries ----


class Foreign:
    """A producer that notes which stream it is asked for."""

    def __init__(self, array: nd.NDArray) -> None:
        self.array = array
        self.streams: list[int | None] = []

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> object:
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream, max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_dlpack_streams(kernels: DeviceModule, stream: ctypes.c_void_p) -> None:
    """A producer is told the stream that will read, and a consumer's stream waits for ours."""
    array = nd.array(np.arange(4, dtype="int32"), GPU)
    foreign = Foreign(array)
    shared = nd.from_dlpack(foreign)
    assert shared.memory_range() == array.memory_range() and foreign.streams == [1]
    GPU.set_raw_stream(stream)
    nd.from_dlpack(foreign)
    assert foreign.streams[-1] == stream.value
    # What our stream writes is there for theirs.
    other = GPU.create_raw_stream()
    assert other is not None and other.value is not None
    kernels["spin"](array, 20_000_000, 99)
    capsule = array.__dlpack__(stream=other.value, max_version=(1, 0))
    GPU.set_raw_stream(other)
    theirs = nd.from_dlpack(capsule)
    np.testing.assert_array_equal(theirs.numpy(), [99, 1, 2, 3])
    GPU.set_raw_stream(stream)
    kernels["spin"](array, 20_000_000, 98)
    GPU.set_raw_stream(None)
    np.testing.assert_array_equal(nd.from_dlpack(array.__dlpack__()).numpy(), [98, 1, 2, 3])
    np.testing.assert_array_equal(nd.from_dlpack(array.to_dlpack()).numpy(), [98, 1, 2, 3])
    assert array.__dlpack_device__() == (2, 0)
    array.__dlpack__(stream=-1)
    for wrong in (0, -2):
        with pytest.raises(ValueError, match=rf"DLPack has no stream {wrong}"):
            array.__dlpack__(stream=wrong)
    GPU.free_raw_stream(other)


def test_from_torch(torch: Any, kernels: DeviceModule) -> None:
    """A tensor of PyTorch is used where it is, with its strides."""
    tensor = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    array = nd.from_dlpack(tensor)
    assert array.device == GPU and array.memory_range().start == tensor.data_ptr()
    np.testing.assert_array_equal(array.numpy(), tensor.cpu().numpy())
    turned = nd.from_dlpack(tensor.t())
    np.testing.assert_array_equal(turned.numpy(), tensor.t().cpu().numpy())
    part = nd.from_dlpack(tensor[1:, ::2])
    np.testing.assert_array_equal(part.numpy(), tensor[1:, ::2].cpu().numpy())
    part.copyfrom(np.full((2, 2), -1, "float32"))
    torch.cuda.synchronize()
    assert (tensor[1:, ::2] == -1).all() and tensor[1, 1] == 5 and tensor[0, 0] == 0
    result = torch.empty(12, device="cuda")
    kernels["add"](tensor.reshape(12).clone(), torch.ones(12, device="cuda"), result, 12, 1)
    torch.cuda.synchronize()
    assert torch.equal(result, tensor.reshape(12) + 1)
    np.testing.assert_array_equal(nd.array(tensor, tvm.cpu()).numpy(), tensor.cpu().numpy())


def test_to_torch(torch: Any) -> None:
    """PyTorch uses our memory where it is, and keeps it alive."""
    values = np.arange(1000, dtype="float32")
    array = nd.array(values, GPU)
    for tensor in (torch.from_dlpack(array), torch.utils.dlpack.from_dlpack(array.to_dlpack())):
        assert tensor.is_cuda and tensor.data_ptr() == array.memory_range().start
    address = array.memory_range().start
    del array
    gc.collect()
    assert nd.empty((1000,), "float32", GPU).memory_range().start != address
    np.testing.assert_array_equal(tensor.cpu().numpy(), values)


def test_torch_streams(torch: Any, kernels: DeviceModule) -> None:
    """Neither side sees memory before the other's stream has written it, on side streams too."""
    side = torch.cuda.Stream()
    for _ in range(5):
        tensor = torch.zeros(1, dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            tensor += 7
            array = nd.from_dlpack(tensor)  # our stream waits for the side stream
        np.testing.assert_array_equal(array.numpy(), [7])

        ours = nd.array(np.zeros(1, "int32"), GPU)
        own = GPU.create_raw_stream()
        GPU.set_raw_stream(own)
        kernels["spin"](ours, 30_000_000, 5)
        with torch.cuda.stream(side):
            seen = torch.from_dlpack(ours) + 1  # the side stream waits for ours
        side.synchronize()
        assert int(seen.item()) == 6
        GPU.set_raw_stream(None)
        GPU.sync(own)
        GPU.free_raw_stream(own)

        GPU.set_raw_stream(side.cuda_stream)  # or both use one
        with torch.cuda.stream(side):
            torch.cuda._sleep(30_000_000)
            source = torch.full((4,), 3.0, device="cuda")
            result = torch.empty(4, device="cuda")
            kernels["add"](source, source, result, 4, 1)
            assert (result == 6).all()
        GPU.set_raw_stream(None)


def test_torch_function(torch: Any, library: Module) -> None:
    """A compiled function takes tensors of PyTorch; so does its wrapper."""
    x, w = torch.arange(8, dtype=torch.float32, device="cuda"), torch.ones(8, device="cuda")
    result = torch.empty(8, device="cuda")
    library["sum"](x, w, result)
    assert torch.equal(result, x + 1)
    wrapped = tvm.contrib.dlpack.to_pytorch_func(library["sum_twice"])
    wrapped(x, w, result)
    assert torch.equal(result, x + 2)


def test_cupy() -> None:
    """CuPy's arrays both ways."""
    cupy = pytest.importorskip("cupy")
    values = cupy.arange(10, dtype="float32")
    array = nd.from_dlpack(values)
    assert array.memory_range().start == values.data.ptr
    np.testing.assert_array_equal(array.numpy(), np.arange(10))
    back = cupy.from_dlpack(nd.array(np.arange(5, dtype="float32"), GPU))
    np.testing.assert_array_equal(cupy.asnumpy(back), np.arange(5))


def test_devices_are_listed() -> None:
    """The GPU is described in words."""
    devices = cuda_devices()
    assert devices[0] == Device(2, 0) and all(device.exist for device in devices)
    text = describe_device(devices[0])
    assert (
        GPU.device_name in text and f"compute capability {GPU.compute_version}" in text and "CUDA 1" in text
    )
