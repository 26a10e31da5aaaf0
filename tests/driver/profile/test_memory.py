"""The arena step by step."""

from tilewright import relay
from tilewright.driver.profile.memory import memory_profile


def _factory():
    x = relay.var("x", shape=(1, 64))
    first = relay.nn.softmax(x)
    second = relay.nn.softmax(first)
    return relay.build(relay.Function([x], relay.add(relay.nn.softmax(second), first)), "llvm")


def test_live_bytes_follow_the_tensors():
    """The peak is what the plan calls its largest live set, and nothing in use lies outside the arena."""
    factory = _factory()
    found = memory_profile(factory.get_graph_json(), factory.memory.arena_bytes, 0)
    assert found.peak_bytes == factory.memory.largest_live_set <= found.arena_bytes
    assert len(found.live_bytes) == len(found.steps) == 4
    assert found.live_bytes[0] == 256 and found.live_bytes[1] == 512
    for block in found.blocks:
        assert block.offset >= 0 and block.offset + block.size_bytes <= found.arena_bytes
        assert block.first <= block.last


def test_tensors_in_use_at_once_do_not_overlap():
    """Two blocks that share a place are never in use at the same step."""
    factory = _factory()
    blocks = memory_profile(factory.get_graph_json(), factory.memory.arena_bytes, 0).blocks
    assert len(blocks) >= 2
    for number, one in enumerate(blocks):
        for other in blocks[number + 1 :]:
            same_time = one.first <= other.last and other.first <= one.last
            same_place = (
                one.offset < other.offset + other.size_bytes and other.offset < one.offset + one.size_bytes
            )
            assert not (same_time and same_place)
