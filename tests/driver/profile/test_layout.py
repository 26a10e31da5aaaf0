"""Drawings of graphs: edges point down, nothing overlaps, large graphs are quick."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.driver.profile.layout import NODE_HEIGHT, NODE_WIDTH, layered_layout


@st.composite
def graphs(draw):
    """A number of nodes, and edges from lower ones to higher ones."""
    count = draw(st.integers(1, 25))
    edges = draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=40))
    return count, sorted((a, b) for a, b in edges if a < b)


@given(graphs())
@settings(max_examples=80, deadline=None)
def test_edges_point_down_and_nodes_do_not_overlap(graph):
    """Every target is below its source; no two boxes touch; all lie in the drawing."""
    count, edges = graph
    layout = layered_layout(count, edges)
    for source, target in edges:
        assert layout.positions[source][1] < layout.positions[target][1]
    for number, (x, y) in enumerate(layout.positions):
        assert x - NODE_WIDTH / 2 >= -0.2 and x + NODE_WIDTH / 2 <= layout.width + 0.2
        assert y - NODE_HEIGHT / 2 >= 0 and y + NODE_HEIGHT / 2 <= layout.height
        for other_x, other_y in layout.positions[number + 1 :]:
            assert abs(x - other_x) >= NODE_WIDTH or abs(y - other_y) >= NODE_HEIGHT
    for (source, target), path in zip(edges, layout.paths, strict=True):
        assert path[0] == layout.positions[source] and path[-1] == layout.positions[target]


def test_a_chain_with_shortcuts_is_straight():
    """Residual edges do not push the main line of a network aside."""
    edges = [(node, node + 1) for node in range(40)] + [(node, node + 4) for node in range(0, 36, 4)]
    across = [x for x, _ in layered_layout(41, sorted(edges)).positions]
    assert max(across) - min(across) < NODE_WIDTH / 4


def test_thousands_of_nodes_take_little_time():
    """Five thousand nodes, each reading from two others."""
    edges = [(node, node + step) for node in range(5000) for step in (1, 3) if node + step < 5000]
    started = time.process_time()
    assert len(layered_layout(5000, edges).positions) == 5000
    assert time.process_time() - started < 10


def test_nothing_is_a_drawing_too():
    """A graph without nodes has no size."""
    assert layered_layout(0, []).width == 0
