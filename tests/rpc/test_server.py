"""Servers let in who has the key, and nobody else; sessions end when they should."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from tilewright import rpc
from tilewright.rpc.frames import VERSION, Kind, frame, text
from tilewright.rpc.handshake import preamble
from tilewright.rpc.keys import read_key
from tilewright.rpc.noise import Handshake
from tilewright.rpc.values import U32
from tilewright.support.errors import RPCError, RPCSessionTimeoutError


def wait_until(holds, seconds=10.0):
    """Waits for something to become true."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(one) for one in found.split()]


def test_other_addresses_need_a_key():
    for host in ("0.0.0.0", "::", ""):
        with pytest.raises(RPCError, match="needs a key"):
            rpc.Server(host, port=0, port_end=0, silent=True)
        with pytest.raises(RPCError, match="needs a key"):
            rpc.Tracker(host, port=0, port_end=0, silent=True)


def test_without_the_key_nobody_is_in(keyed_server, other_key_file):
    with pytest.raises(RPCError, match="requires a key"):
        rpc.connect("127.0.0.1", keyed_server.port)
    with pytest.raises(RPCError, match="another key"):
        rpc.connect("127.0.0.1", keyed_server.port, key_file=other_key_file)


def test_a_client_with_a_key_does_not_trust_a_server_without(server, key_file):
    with pytest.raises(RPCError, match="cannot prove who it is"):
        rpc.connect("127.0.0.1", server.port, key_file=key_file)


def test_labels(server):
    with pytest.raises(PermissionError, match="is 'board', not 'phone'"):
        rpc.connect("127.0.0.1", server.port, "phone")


def test_a_recorded_connection_is_worth_nothing(keyed_server, key_file):
    """Sending again what a client sent opens no session."""
    client = Handshake(read_key(key_file), preamble(1))
    first = client.first()
    opening = preamble(1) + len(first).to_bytes(2, "big") + first
    asked = U32.pack(VERSION) + text("") + U32.pack(0)

    def play(record):
        with socket.create_connection(("127.0.0.1", keyed_server.port), timeout=5) as connection:
            connection.sendall(opening)
            told = connection.recv(58, socket.MSG_WAITALL)
            if record is None:
                client.finish(told[10:])
                sealed = client.sends.encrypt(frame(Kind.OPEN, asked)[0])
                record = len(sealed).to_bytes(2, "big") + sealed
            connection.sendall(record)
            return record, connection.recv(1)

    record, answer = play(None)
    assert answer  # the client itself is in
    assert play(record)[1] == b""  # and whoever repeats it is not


def test_a_thousand_wrong_keys_do_not_slow_a_right_one(keyed_server, key_file):
    wrong = preamble(1) + (48).to_bytes(2, "big") + os.urandom(48)
    stop = threading.Event()
    tried = []

    def attack():
        while not stop.is_set():
            with socket.create_connection(("127.0.0.1", keyed_server.port), timeout=5) as connection:
                connection.sendall(wrong)
                connection.recv(1)
                tried.append(1)

    held = [socket.create_connection(("127.0.0.1", keyed_server.port)) for _ in range(100)]  # silent ones
    attackers = [threading.Thread(target=attack) for _ in range(2)]
    for one in attackers:
        one.start()
    try:
        while len(tried) < 1000:
            begin = time.monotonic()
            with rpc.connect("127.0.0.1", keyed_server.port, key_file=key_file) as session:
                assert session.get_function("testing.echo")(1) == 1
            assert time.monotonic() - begin < 5
    finally:
        stop.set()
        for one in attackers:
            one.join()
        for one in held:
            one.close()


def test_a_session_ends_at_its_time_limit(server):
    session = rpc.connect("127.0.0.1", server.port, session_timeout=1)
    echo = session.get_function("testing.echo")
    wait_until(lambda: not children(server.pid))
    with pytest.raises(RPCSessionTimeoutError, match="time limit of 1 seconds"):
        echo(1)


def test_a_session_ends_with_its_client(server):
    """Also when the client is killed, and the session's files with it."""
    script = (
        "from tilewright import rpc; import sys, time\n"
        f"session = rpc.connect('127.0.0.1', {server.port})\n"
        "session.upload(b'x', 'file')\n"
        "print(session.get_function('tvm.rpc.server.workpath')('file'), flush=True); time.sleep(60)"
    )
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    path = client.stdout.readline().strip()
    assert os.path.exists(path) and len(children(server.pid)) == 1
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdout.close()
    wait_until(lambda: not children(server.pid) and not os.path.exists(path))


def test_a_session_that_crashes_takes_nothing_with_it(server):
    with rpc.connect("127.0.0.1", server.port) as other:
        session = rpc.connect("127.0.0.1", server.port)
        echo = session.get_function("testing.echo")
        os.kill(max(children(server.pid)), signal.SIGKILL)
        with pytest.raises(RPCError):
            echo(1)
        assert other.get_function("testing.echo")(2) == 2


def test_many_clients_at_once(server):
    sessions = [rpc.connect("127.0.0.1", server.port) for _ in range(8)]
    for number, session in enumerate(sessions):
        session.upload(str(number).encode(), "file")
    for number, session in enumerate(sessions):
        assert session.download("file") == str(number).encode()
        session.close()
    wait_until(lambda: not children(server.pid))


def test_a_server_ends_with_all_it_started():
    made = rpc.Server(port=0, port_end=0, silent=True)
    session = rpc.connect("127.0.0.1", made.port)
    (child,) = children(made.pid)
    made.terminate()
    wait_until(lambda: not os.path.exists(f"/proc/{child}"))
    with pytest.raises(RPCError):
        session.get_function("testing.echo")


def prepare():
    """What the next test has called in the server."""
    from tilewright.runtime.registry import register_func

    register_func("tests.rpc.prepared", lambda: "prepared", override=True)


def test_a_callback_prepares_the_server(monkeypatch):
    monkeypatch.syspath_prepend(os.path.dirname(__file__))
    import test_server as importable

    made = rpc.Server(port=0, port_end=0, silent=True, server_init_callback=importable.prepare)
    with rpc.connect("127.0.0.1", made.port) as session:
        assert session.get_function("tests.rpc.prepared")() == "prepared"
    made.terminate()
    with pytest.raises(RPCError, match="not as a lambda"):
        rpc.Server(server_init_callback=lambda: None)


def test_popen_session_wants_a_program(tmp_path):
    with pytest.raises(ValueError, match="is not a file"):
        rpc.PopenSession(str(tmp_path / "nothing"))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="not executable"):
        rpc.PopenSession(str(tmp_path / "file"))
