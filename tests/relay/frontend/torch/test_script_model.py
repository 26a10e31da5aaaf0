"""``from_pytorch``: names, parameters, inputs, errors, and files."""

import numpy as np
import pytest
import torch
from tests.relay.frontend.torch.script_models import check, imported, numbers, scripted, traced

from tilewright import relay
from tilewright.relay.frontend import from_pytorch, import_model
from tilewright.relay.frontend.common import UnsupportedOperators
from tilewright.support.errors import ModelError


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(inplace=True)
        )
        self.last = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.first(x).mean((2, 3)))


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    return Small().eval()


def test_trace_and_script_agree_with_pytorch(small):
    """Both forms of a module."""
    x = numbers(1, 3, 8, 8)
    check(traced(small, x), x)
    check(scripted(small), x, executor="graph")


def test_names(small):
    """Inputs have the names that are given, parameters their paths, with underscores where asked for."""
    x = numbers(1, 3, 8, 8)
    script = traced(small, x)
    module, params = from_pytorch(script, [("data", x.shape)])
    assert module["main"].params[0].name_hint == "data"
    used = {name for name, _ in small.named_parameters()} | {"first.1.running_mean", "first.1.running_var"}
    assert set(params) == used
    module, params = from_pytorch(script, [("data", x.shape)], use_parser_friendly_name=True)
    assert set(params) == {name.replace(".", "_") for name in used}
    assert relay.fromtext(module.astext(show_meta_data=True))["main"] is not None


def test_shared_parameters_are_one():
    """A weight that two layers share is one parameter."""

    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.nn.Linear(3, 3, bias=False)
            self.other = torch.nn.Linear(3, 3, bias=False)
            self.other.weight = self.one.weight

        def forward(self, x):
            return self.other(self.one(x))

    x = numbers(2, 3)
    script = traced(Shared(), x)
    check(script, x)
    assert len(imported(script, [x])[1]) == 1


def test_element_types():
    """From the trace, from the user, or the default."""

    def program(x):
        return x + 1

    integers = torch.arange(3)
    module, _ = from_pytorch(traced(program, integers), [("x", (3,))])
    assert module["main"].params[0].type_annotation.dtype == "int64"
    module, _ = from_pytorch(scripted(program), [("x", ((3,), "int"))])
    assert module["main"].params[0].type_annotation.dtype == "int32"
    module, _ = from_pytorch(scripted(program), [("x", (3,))], default_dtype="float64")
    assert module["main"].params[0].type_annotation.dtype == "float64"
    with pytest.warns(UserWarning, match="traced with the element type int64"):
        from_pytorch(traced(program, integers), [("x", ((3,), "float32"))])


def test_custom_conversion():
    """A user's function replaces the conversion of an operator."""
    seen = []

    def halved(inputs, types):
        seen.append(types)
        return relay.multiply(inputs[0], relay.const(0.5))

    module, _ = from_pytorch(scripted(rectified), [("x", (3,))], {"aten::relu": halved})
    assert seen == [["float32"]]
    assert "multiply" in str(module)


def rectified(x):
    return torch.relu(x)


def two_unsupported(x):
    y = torch.linalg.svdvals(x) + 1
    z = torch.linalg.eigvals(x)
    return y, z, torch.linalg.svdvals(y)


def test_one_error_lists_every_unsupported_operator():
    """With the nodes, and the lines that they come from."""
    with pytest.raises(UnsupportedOperators) as caught:
        imported(scripted(two_unsupported), [numbers(3, 3)])
    assert [(one.operator, one.count) for one in caught.value.operators] == [
        ("aten::linalg_svdvals", 2),
        ("aten::linalg_eigvals", 1),
    ]
    assert "test_script_model.py:" in str(caught.value)


def in_a_branch_that_is_not_taken(x):
    if x.dim() == 5:
        x = torch.linalg.svdvals(x)
    return x


def test_operators_that_are_never_reached_may_be_anything():
    """The condition is known."""
    check(scripted(in_a_branch_that_is_not_taken), numbers(3, 4))


def wrong_shapes(x, y):
    return x @ y


def test_errors_name_the_line():
    """What does not fit is said with the node and its place in the source."""
    with pytest.raises(ModelError, match=r"aten::matmul\) at .*test_script_model\.py:\d+"):
        imported(scripted(wrong_shapes), [numbers(2, 3), numbers(4, 5)])


@pytest.mark.parametrize(
    ("infos", "message"),
    [
        ([("x", (3,))], "the model has 2 inputs"),
        ([("x", (3,)), ("x", (3,))], "two inputs have the name 'x'"),
        ([("x", (3,)), ("y", (3,)), ("z", (3,))], "input_infos lists 3"),
        ({"x": (3,)}, "a list of pairs"),
        ([("x", 3), ("y", (3,))], "give a tuple of sizes"),
    ],
)
def test_wrong_input_infos(infos, message):
    """Each says what is expected."""
    with pytest.raises(ModelError, match=message):
        from_pytorch(scripted(wrong_shapes), infos)


def test_a_module_that_is_not_scripted():
    """The error says how to make one."""
    with pytest.raises(
        ModelError, match=r"takes a traced or scripted module, not a Linear: use torch\.jit\.trace"
    ):
        from_pytorch(torch.nn.Linear(2, 2), [("x", (1, 2))])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_archive(small, tmp_path):
    """A file that torch.jit.save wrote, with shapes from the user; without them the error says how to give them."""
    x = numbers(1, 3, 8, 8)
    path = str(tmp_path / "model.pt")
    torch.jit.save(traced(small, x), path)
    module, params = import_model(path, shape={"data": (1, 3, 8, 8)})
    run = relay.create_executor("debug", mod=module, target="llvm").evaluate()
    found = run(data=x.numpy(), **params).numpy()
    np.testing.assert_allclose(found, small(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ModelError, match="does not say the shapes of its inputs x: give shape="):
        import_model(path)


class Doubled(torch.autograd.Function):
    """A function with a gradient of its own."""

    @staticmethod
    def forward(ctx, x, y, factor):
        ctx.save_for_backward(x)
        return torch.tanh(x) * factor, y + factor

    @staticmethod
    def backward(ctx, first, second):
        return first, second, None


def with_functions(x):
    first, second = Doubled.apply(x + 1, x, 2.0)
    third, _ = Doubled.apply(first, second, 3.0)
    return first - 1, second * third


def test_functions_with_gradients_of_their_own():
    """A ``torch.autograd.Function`` is traced as what its forward pass did, whatever the names inside."""
    x = numbers(2, 3)
    with torch.no_grad():
        script = traced(with_functions, x)
    assert "prim::PythonOp" in {node.kind() for node in script.graph.nodes()}
    check(script, x)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_padding_by_name(padding):
    """Traces have an operator of their own for convolutions with such padding."""
    x = numbers(1, 3, 7, 6)
    script = traced(torch.nn.Conv2d(3, 2, (3, 4), padding=padding).eval(), x)
    assert "aten::_convolution_mode" in {node.kind() for node in script.inlined_graph.nodes()}
    check(script, x)
