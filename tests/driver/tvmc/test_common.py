"""Reading of arguments: shapes, passes, options, layouts, trackers."""

import argparse

import pytest

from tilewright import relay
from tilewright.driver.tvmc import common
from tilewright.driver.tvmc.common import TVMCException
from tilewright.ir.module import IRModule
from tilewright.relay.analysis import post_order_visit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x:[1,3,224,224]", {"x": [1, 3, 224, 224]}),
        ("x:[1, 3]  y/z.0:[]", {"x": [1, 3], "y/z.0": []}),
        ("input:0:[2],other: [3,]", {"input:0": [2], "other": [3]}),
        ("'a name':[0]", {"a name": [0]}),
    ],
)
def test_shapes(text, expected):
    """Several shapes stand side by side; names may have colons, dots, slashes and, quoted, spaces."""
    assert common.parse_shape_string(text) == expected


def test_open_dimensions():
    """-1 and ? are dimensions that stay unknown."""
    (shape,) = common.parse_shape_string("x:[-1,?,5]").values()
    assert isinstance(shape[0], relay.Any) and isinstance(shape[1], relay.Any) and shape[2] == 5


@pytest.mark.parametrize("text", ["", "x", "x:1,2", "x:[1", "x:[1.5]", "x:[a]", ":[1]", "x:[1] y"])
def test_what_is_no_shape(text):
    """Each is refused, as argparse expects it of the type of an option."""
    with pytest.raises(argparse.ArgumentTypeError):
        common.parse_shape_string(text)


def test_pass_lists():
    """Names of passes, with or without spaces; one that does not exist is answered with the nearest."""
    assert common.parse_pass_list_str("FoldConstant, AlterOpLayout") == ["FoldConstant", "AlterOpLayout"]
    assert common.parse_pass_list_str("") == [""]
    with pytest.raises(argparse.ArgumentTypeError, match="FuseOp.*did you mean 'FuseOps'"):
        common.parse_pass_list_str("FuseOp")


def test_pass_options():
    """Values get the type of their option; fields are given as JSON."""
    given = [
        "tir.disable_vectorize=true",
        "relay.FuseOps.max_depth=7",
        'tir.UnrollLoop={"auto_max_step": 4}',
    ]
    assert common.parse_configs(given) == {
        "tir.disable_vectorize": True,
        "relay.FuseOps.max_depth": 7,
        "tir.UnrollLoop": {"auto_max_step": 4},
    }
    assert common.parse_configs(None) == {}
    assert common.get_pass_config_value("a", "text", "str") == "text"
    assert common.get_pass_config_value("a", "1", "IntImm") == 1
    assert common.get_pass_config_value("a", "False", "IntImm") is False


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("relay.FuseOps.max_depth", "name=value"),
        ("relay.FuseOps.max_depth=", "name=value"),
        ("relay.FuseOps.max_depth=x", "whole number"),
        ("relay.FuseOps.max_dept=1", "did you mean 'relay.FuseOps.max_depth'"),
        ("tir.UnrollLoop=4", "expects UnrollLoopConfig"),
        ("tir.UnrollLoop={", "JSON"),
        ('tir.UnrollLoop={"nothing": 4}', "no field 'nothing'"),
    ],
)
def test_wrong_pass_options(given, message):
    """Each error says what is wrong with it."""
    with pytest.raises(TVMCException, match=message):
        common.parse_configs([given])


def test_layouts():
    """Convolutions work on the layout that is named, and the module still takes what it took."""
    data = relay.var("data", shape=(1, 3, 8, 8))
    weight = relay.var("weight", shape=(4, 3, 3, 3))
    mod = IRModule.from_expr(relay.Function([data, weight], relay.nn.conv2d(data, weight)))
    made = common.convert_graph_layout(mod, "NHWC")
    layouts = []

    def look(expr):
        if isinstance(expr, relay.Call) and expr.op.name == "nn.conv2d":
            layouts.append(expr.attrs.data_layout)

    post_order_visit(made["main"], look)
    assert layouts == ["NHWC"]
    assert made["main"].params[0].checked_type.concrete_shape == (1, 3, 8, 8)
    with pytest.raises(TVMCException, match="NCHW and NHWC"):
        common.convert_graph_layout(mod, "NCWH")


def test_trackers():
    """Host and port; 9090 is the port that goes without saying."""
    assert common.tracker_host_port_from_cli("board:9191") == ("board", 9191)
    assert common.tracker_host_port_from_cli("board") == ("board", 9090)
    assert common.tracker_host_port_from_cli(None) == (None, None)
    with pytest.raises(TVMCException, match="host:port"):
        common.tracker_host_port_from_cli("board:x")
