"""The memory plan by expression."""

import tilewright as tvm
from tilewright import relay
from tilewright.relay.backend.static_memory_plan import StorageInfo, graph_plan_memory


def planned(func: relay.Function) -> tuple[relay.Function, dict]:
    module = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.FuseOps(0)])(
        tvm.IRModule.from_expr(func)
    )
    module = relay.transform.InferType()(module)
    return module["main"], graph_plan_memory(module["main"]).expr_to_storage_info


def test_steps_that_follow_each_other_share_memory():
    """Of a chain of operators at most two results exist at a time; inputs keep memory of their own."""
    x, y = relay.var("x", shape=(10,)), relay.var("y", shape=(1,))
    last = relay.add(x, relay.exp(y))
    for _ in range(6):
        last = relay.nn.softmax(last)
    main, found = planned(relay.Function([x, y], last))
    ids = {number for info in found.values() for number in info.storage_ids}
    assert {tuple(found[param].storage_sizes) for param in main.params} == {(40,), (4,)}
    assert 4 <= len(ids) <= 5
    assert {kind for info in found.values() for kind in info.device_types} == {1}
    inputs = {found[param].storage_ids[0] for param in main.params}
    assert len(inputs) == 2 and found[main.body].storage_ids[0] not in inputs


def test_a_tuple_has_the_storages_of_its_fields():
    """They are flattened, in order."""
    x = relay.var("x", shape=(4,))
    main, found = planned(relay.Function([x], relay.Tuple([relay.Tuple([relay.exp(x), x]), relay.log(x)])))
    (outer,) = [info for expr, info in found.items() if expr.same_as(main.body)]
    assert len(outer.storage_ids) == 3 and outer.storage_sizes == [16, 16, 16]
    assert outer.storage_ids[1] == found[main.params[0]].storage_ids[0]
    assert len(set(outer.storage_ids)) == 3


def test_a_storage_info_can_be_made():
    """As TVM's: numbers, kinds of device and sizes."""
    info = StorageInfo([0, 2], [1, 1], [16, 8])
    assert (info.storage_ids, info.device_types, info.storage_sizes) == ([0, 2], [1, 1], [16, 8])
    assert repr(info) == "StorageInfo([0, 2], [1, 1], [16, 8])"
