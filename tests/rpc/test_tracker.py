"""A tracker lends every device to one client at a time, and loses none."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from tilewright import rpc


@pytest.fixture(scope="module")
def lab(key_file):
    """A tracker with four servers, all with a key."""
    tracker = rpc.Tracker(port=0, port_end=0, silent=True, key_file=key_file)
    servers = [
        rpc.Server(
            port=0,
            port_end=0,
            key="board",
            tracker_addr=("127.0.0.1", tracker.port),
            silent=True,
            key_file=key_file,
        )
        for _ in range(4)
    ]
    session = rpc.connect_tracker("127.0.0.1", tracker.port, key_file=key_file)
    wait_for_free(session, 4)
    yield session, tracker, servers
    for one in (*servers, tracker):
        one.terminate()


def wait_for_free(session, count, seconds=20.0):
    end = time.monotonic() + seconds
    while session.summary()["queue_info"].get("board", {}).get("free") != count:
        assert time.monotonic() < end, session.summary()
        time.sleep(0.05)


def test_a_device_is_lent_and_returned(lab):
    session, _, _ = lab
    with session.request("board") as remote:
        assert remote.get_function("testing.echo")(5) == 5
        wait_for_free(session, 3)
    wait_for_free(session, 4)
    assert "server:board" in session.text_summary() and "board" in session.text_summary()
    assert session.request_and_run("board", lambda remote: remote.get_function("testing.echo")(7)) == 7
    wait_for_free(session, 4)


def test_waiting_has_a_limit(lab):
    session, _, _ = lab
    with pytest.raises(TimeoutError, match="no device 'phone' was free for 1 seconds; .* board"):
        session.request("phone", wait_seconds=1)


def test_a_waiting_thread_stops_nobody(lab):
    """One session with the tracker serves several threads, though one of them waits for a device."""
    session, _, _ = lab
    held = [session.request("board") for _ in range(4)]
    got = []
    waiting = threading.Thread(target=lambda: got.append(session.request("board", wait_seconds=20)))
    waiting.start()
    while session.summary()["queue_info"]["board"]["pending"] != 1:
        time.sleep(0.02)
    held.pop().close()
    waiting.join(20)
    for one in (*held, *got):
        one.close()
    assert len(got) == 1
    wait_for_free(session, 4)


def test_the_larger_priority_comes_first(lab, key_file):
    session, tracker, _ = lab
    held = [session.request("board") for _ in range(4)]
    order = []

    def ask(priority):
        own = rpc.connect_tracker("127.0.0.1", tracker.port, key_file=key_file)
        with own.request("board", priority=priority):
            order.append(priority)
        own.close()

    clients = []
    for priority in (1, 5, 3):
        clients.append(threading.Thread(target=ask, args=(priority,)))
        clients[-1].start()
        while session.summary()["queue_info"]["board"]["pending"] != len(clients):
            time.sleep(0.02)
    held.pop().close()
    for client in clients:
        client.join()
    assert order == [5, 3, 1]
    for one in held:
        one.close()
    wait_for_free(session, 4)


def test_a_server_of_a_tracker_takes_its_clients_only(lab, key_file):
    _, _, servers = lab
    for label in ("", "board", "board:" + 32 * "0"):
        with pytest.raises(PermissionError, match="ask that for the device"):
            rpc.connect("127.0.0.1", servers[0].port, label, key_file=key_file)


def test_no_device_and_no_job_is_lost(lab, key_file):
    """Four servers, ten clients of which two are killed with a device in their hands: all other jobs are done, and all
    devices are free afterwards."""
    session, tracker, _ = lab
    script = (
        "import time; from tilewright import rpc\n"
        f"tracker = rpc.connect_tracker('127.0.0.1', {tracker.port}, key_file={str(key_file)!r})\n"
        "remote = tracker.request('board'); print('has it', flush=True); time.sleep(60)"
    )
    killed = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for one in killed:
        assert one.stdout.readline() == "has it\n"
    done = []

    def work(number):
        own = rpc.connect_tracker("127.0.0.1", tracker.port, key_file=key_file)
        for job in range(3):
            with own.request("board") as remote:
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
        one.stdout.close()
    for client in clients:
        client.join(60)
    assert sorted(done) == sorted(10 * number + job for number in range(8) for job in range(3))
    wait_for_free(session, 4)


@pytest.mark.slow
def test_a_device_whose_client_never_came_is_lent_again(lab, key_file):
    """A client that asks the tracker and then goes without opening its session."""
    session, tracker, _ = lab
    own = rpc.connect_tracker("127.0.0.1", tracker.port, key_file=key_file)
    from tilewright.rpc.frames import Kind, text
    from tilewright.rpc.values import I32, U32

    own._ask(Kind.REQUEST, text("board") + I32.pack(1) + U32.pack(0), 10)
    own.close()
    wait_for_free(session, 3)
    wait_for_free(session, 4, seconds=30)


def test_a_device_behind_a_proxy(lab, key_file):
    """It waits at the proxy, and is lent by the tracker like any other."""
    session, tracker, _ = lab
    proxy = rpc.Proxy(
        port=0, port_end=0, tracker_addr=("127.0.0.1", tracker.port), silent=True, key_file=key_file
    )
    behind = rpc.Server("127.0.0.1", proxy.port, is_proxy=True, key="hidden", silent=True, key_file=key_file)
    for number in range(2):
        with session.request("hidden", wait_seconds=20) as remote:
            content = bytes(3_000_000)
            remote.upload(content, "file")
            assert remote.download("file") == content
            assert remote.get_function("testing.echo")(number) == number
    behind.terminate()
    proxy.terminate()
