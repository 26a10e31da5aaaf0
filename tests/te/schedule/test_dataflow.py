"""The graph behind a schedule, under the names that older programs have for it."""

from tilewright import te


def test_graph_of_reads() -> None:
    """Reads, readers and order of a diamond: producers come first."""
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    c = te.compute((4,), lambda i: a[i] * 2, name="c")
    d = te.compute((4,), lambda i: b[i] + c[i], name="d")
    graph = te.schedule.CreateReadGraph([d.op])
    assert graph[d.op] == [b, c] and graph[b.op] == [a] and graph[a.op] == []
    feeds = te.schedule.CreateFeedGraph(graph)
    assert set(feeds[a]) == {b.op, c.op}
    order = te.schedule.PostDFSOrder([d.op], graph)
    assert order[0] is a.op and order[-1] is d.op and len(order) == 4


def test_attach_path() -> None:
    """A stage inside another has the loops around its place, innermost first."""
    a = te.placeholder((4, 5), name="a")
    b = te.compute((4, 5), lambda i, j: a[i, j] + 1, name="b")
    c = te.compute((4, 5), lambda i, j: b[i, j] * 2, name="c")
    schedule = te.create_schedule(c.op)
    schedule[b].compute_at(schedule[c], c.op.axis[1])
    path = te.schedule.CreateAttachPath(schedule)
    assert path[b.op] == [c.op.axis[1], c.op.axis[0]] and path[c.op] == []


def test_body_of_a_scan() -> None:
    """What lies between the state and the update is the body; what does not read the state is not."""
    x = te.placeholder((5, 3), name="x")
    before = te.compute((5, 3), lambda t, i: x[t, i] * 2, name="before")
    state = te.placeholder((5, 3))
    start = te.compute((1, 3), lambda _, i: x[0, i])
    middle = te.compute((5, 3), lambda t, i: state[t - 1, i] + 1, name="middle")
    update = te.compute((5, 3), lambda t, i: middle[t, i] + before[t, i], name="update")
    result = te.scan(start, update, state, inputs=[before])
    assert te.schedule.ScanGetBody(result.op) == [middle.op, update.op]
    assert result.op.spatial_axis_ == result.op.spatial_axis
