"""C servers at a tracker: lent like any other, freed when their clients die, and used by the tuners."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runtime.rpc.conftest import StartedServer
from tests.runtime.rpc.test_server import add_library

from tilewright import auto_scheduler, autotvm, rpc, te
from tilewright.rpc.frames import Kind, text
from tilewright.rpc.keys import write_key
from tilewright.rpc.values import I32, U32


def wait_for_free(session: rpc.TrackerSession, label: str, count: int, seconds: float = 20.0) -> None:
    """Until so many devices can be had."""
    end = time.monotonic() + seconds
    while session.summary()["queue_info"].get(label, {}).get("free") != count:
        assert time.monotonic() < end, session.summary()
        time.sleep(0.05)


class Lab:
    """A tracker with two servers in C and two in Python, all with a key."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.key_file = folder / "key"
        write_key(self.key_file)
        self.tracker = rpc.Tracker(port=0, port_end=0, silent=True, key_file=self.key_file)
        self.small = []
        for number in range(2):
            (folder / f"sessions{number}").mkdir()
            where = ["--tracker", f"127.0.0.1:{self.tracker.port}", "--key", "board"]
            command = [str(program), "--key-file", str(self.key_file), *where]
            self.small.append(StartedServer(command, folder / f"sessions{number}"))
        address = ("127.0.0.1", self.tracker.port)
        self.large = [
            rpc.Server(
                port=0, port_end=0, key="board", tracker_addr=address, silent=True, key_file=self.key_file
            )
            for _ in range(2)
        ]
        self.session = self.connect()
        wait_for_free(self.session, "board", 4)

    def connect(self) -> rpc.TrackerSession:
        """Another client of the tracker."""
        return rpc.connect_tracker("127.0.0.1", self.tracker.port, key_file=self.key_file)

    def close(self) -> None:
        """Ends the servers first, which say so if they lose their tracker."""
        for small in self.small:
            small.stop()
        for large in self.large:
            large.terminate()
        self.tracker.terminate()


@pytest.fixture(scope="module")
def lab(server_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Shared, and free again after each test."""
    made = Lab(server_program, tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


def test_no_device_and_no_job_is_lost(lab: Lab) -> None:
    """Ten clients, of which two are killed with a device in their hands: the jobs of all others are done, by servers of
    both kinds, and all devices are free afterwards."""
    script = (
        "import time; from tilewright import rpc\n"
        f"tracker = rpc.connect_tracker('127.0.0.1', {lab.tracker.port}, key_file={str(lab.key_file)!r})\n"
        "remote = tracker.request('board'); print('has it', flush=True); time.sleep(60)"
    )
    killed = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for one in killed:
        assert one.stdout is not None and one.stdout.readline() == "has it\n"
    done: list[int] = []
    kinds: set[str] = set()

    def work(number: int) -> None:
        own = lab.connect()
        for job in range(3):
            with own.request("board") as remote:
                kinds.add(remote.server)
                done.append(remote.get_function("testing.echo")(10 * number + job))
        own.close()

    clients = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for client in clients:
        client.start()
    while len(done) < 6:
        time.sleep(0.01)
    for one in killed:
        one.send_signal(signal.SIGKILL)
        one.wait()
        assert one.stdout is not None
        one.stdout.close()
    for client in clients:
        client.join(60)
    assert sorted(done) == sorted(10 * number + job for number in range(8) for job in range(3))
    wait_for_free(lab.session, "board", 4)
    assert kinds == {"tilewright C server", "tilewright python"}


@pytest.fixture
def alone(start_server: Callable[..., Any]) -> Iterator[tuple[Any, rpc.TrackerSession, int]]:
    """One C server at a tracker of its own, without a key."""
    tracker = rpc.Tracker(port=0, port_end=0, silent=True)
    server = start_server("--tracker", f"127.0.0.1:{tracker.port}", "--key", "solo")
    session = rpc.connect_tracker("127.0.0.1", tracker.port)
    wait_for_free(session, "solo", 1)
    yield server, session, tracker.port
    session.close()
    server.stop()
    tracker.terminate()


def test_only_clients_of_the_tracker(alone: tuple[Any, rpc.TrackerSession, int]) -> None:
    """Neither its label nor a guess opens a session, and a key is good once."""
    server, session, _ = alone
    for label in ("", "solo", "solo:" + 32 * "0"):
        with pytest.raises(PermissionError, match="ask that for the device"):
            rpc.connect(server.host, server.port, label)
    with session.request("solo") as remote:
        assert remote.get_function("testing.echo")(1) == 1
        wait_for_free(session, "solo", 0)
    wait_for_free(session, "solo", 1)


def test_a_busy_session_ends_with_its_client(
    alone: tuple[Any, rpc.TrackerSession, int], tmp_path: Path
) -> None:
    """A client that dies in the middle of a long measurement does not keep the device for the rest of it."""
    _, session, port = alone
    path = add_library(tmp_path)
    script = (
        "import numpy as np, tilewright as tvm; from tilewright import rpc\n"
        f"remote = rpc.connect_tracker('127.0.0.1', {port}).request('solo'); remote.upload({str(path)!r})\n"
        "a = tvm.nd.array(np.zeros(1000, 'float32'), remote.cpu())\n"
        "b = tvm.nd.empty((1000,), 'float32', remote.cpu())\n"
        "timed = remote.load_module('add.tar').time_evaluator('add_one', remote.cpu(), min_repeat_ms=60000)\n"
        "print('begins', flush=True); timed(a, b)"
    )
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None and client.stdout.readline() == "begins\n"
    time.sleep(0.3)
    client.kill()
    client.wait()
    client.stdout.close()
    wait_for_free(session, "solo", 1, seconds=10)


@pytest.mark.slow
def test_a_device_whose_client_never_came_is_lent_again(alone: tuple[Any, rpc.TrackerSession, int]) -> None:
    """A client that asks the tracker and then goes without opening its session."""
    _, session, port = alone
    own = rpc.connect_tracker("127.0.0.1", port)
    own._ask(Kind.REQUEST, text("solo") + I32.pack(1) + U32.pack(0), 10)
    own.close()
    wait_for_free(session, "solo", 0)
    wait_for_free(session, "solo", 1, seconds=30)


def test_a_tracker_needs_a_label(server_program: Path) -> None:
    """And an address."""
    for options, words in (
        (["--tracker", "lab:9190"], "--key NAME"),
        (["--tracker", "lab", "--key", "a"], "HOST:PORT"),
    ):
        done = subprocess.run([server_program, *options], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and words in done.stderr


@autotvm.template("tests/runtime/rpc/add")
def add_template(size: int) -> Any:
    """A sum with one choice."""
    a, b = te.placeholder((size,), name="a"), te.placeholder((size,), name="b")
    c = te.compute((size,), lambda i: a[i] + b[i], name="c")
    schedule = te.create_schedule(c.op)
    config = autotvm.get_config()
    config.define_split("tile", schedule[c].op.axis[0], num_outputs=2)
    config["tile"].apply(schedule, c, schedule[c].op.axis[0])
    return schedule, [a, b, c]


def test_autotvm_measures_there(alone: tuple[Any, rpc.TrackerSession, int]) -> None:
    """Candidates are built here, and run and timed by the C server."""
    _, _, port = alone
    task = autotvm.task.create("tests/runtime/rpc/add", args=(64,), target="llvm")
    runner = autotvm.RPCRunner("solo", "127.0.0.1", port, timeout=20, number=1, repeat=1)
    option = autotvm.measure_option(builder=autotvm.LocalBuilder(n_parallel=1), runner=runner)
    found: list[Any] = []
    autotvm.tuner.GridSearchTuner(task).tune(
        n_trial=2, measure_option=option, callbacks=[lambda tuner, inputs, results: found.extend(results)]
    )
    assert [result.error_no for result in found] == [0, 0]
    assert all(result.costs[0] > 0 for result in found)


@auto_scheduler.register_workload
def rpc_test_scaled(size: int) -> Any:
    """A small computation."""
    a = te.placeholder((size, size), name="a")
    return [a, te.compute((size, size), lambda i, j: a[i, j] * 2.0 + 1.0, name="b")]


def test_the_auto_scheduler_measures_there(alone: tuple[Any, rpc.TrackerSession, int]) -> None:
    """The same for the other tuner."""
    _, _, port = alone
    task = auto_scheduler.SearchTask(func=rpc_test_scaled, args=(32,), target="llvm")
    state = task.compute_dag.get_init_state()
    builder = auto_scheduler.LocalBuilder(timeout=60, n_parallel=1)
    runner = auto_scheduler.RPCRunner(
        "solo", "127.0.0.1", port, timeout=20, number=1, repeat=1, min_repeat_ms=0
    )
    inputs = [auto_scheduler.MeasureInput(task, state)]
    results = runner.run(inputs, builder.build(inputs))
    assert results[0].error_no == 0, results[0].error_msg
    assert np.mean([float(cost) for cost in results[0].costs]) > 0
