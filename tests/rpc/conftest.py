"""Servers that the tests share, and a key."""

import sys

import pytest

from tilewright import rpc
from tilewright.rpc.keys import write_key


@pytest.fixture(scope="session")
def key_file(tmp_path_factory):
    pytest.importorskip("cryptography")
    path = tmp_path_factory.mktemp("key") / "key"
    write_key(path)
    return path


@pytest.fixture(scope="session")
def other_key_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("key") / "other"
    write_key(path)
    return path


@pytest.fixture(scope="session")
def server():
    made = rpc.Server(port=0, port_end=0, key="board", silent=True)
    yield made
    made.terminate()


@pytest.fixture(scope="session")
def keyed_server(key_file):
    made = rpc.Server(port=0, port_end=0, key="board", silent=True, key_file=key_file)
    yield made
    made.terminate()


@pytest.fixture(params=["local", "pipes", "socket", "encrypted"])
def session(request, server, keyed_server, key_file):
    """A session of every kind."""
    if request.param == "local":
        made = rpc.LocalSession()
    elif request.param == "pipes":
        made = rpc.PopenSession([sys.executable, "-m", "tilewright.rpc.pipe_server"])
    elif request.param == "socket":
        made = rpc.connect("127.0.0.1", server.port, "board")
    else:
        made = rpc.connect("127.0.0.1", keyed_server.port, "board", key_file=key_file)
    with made:
        yield made
