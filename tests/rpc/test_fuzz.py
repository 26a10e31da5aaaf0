"""A few hundred hostile messages; ``python tests/rpc/fuzz.py --count 100000`` sends many."""

import importlib.util
from pathlib import Path

from tilewright.rpc.keys import read_key


def test_hostile_messages(server, keyed_server, key_file):
    spec = importlib.util.spec_from_file_location("fuzz", Path(__file__).with_name("fuzz.py"))
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    report = fuzz.attack(400, server.port, keyed_server.port, read_key(key_file), seed=1)
    assert report.crashes == [] and report.intruders == 0 and report.outside == []
    assert report.sent >= 400
