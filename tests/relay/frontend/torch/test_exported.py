"""Exported programs: weights, names, open dimensions, mutation, control flow, files and errors."""

import io
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.relay.frontend.torch.running import array, check, leaves, run  # noqa: E402

import tilewright as tvm  # noqa: E402
from tilewright import relay  # noqa: E402
from tilewright.relay.frontend import from_exported_program, from_fx  # noqa: E402
from tilewright.relay.frontend.common import UnsupportedOperators  # noqa: E402
from tilewright.relay.frontend.format_errors import FormatError  # noqa: E402
from tilewright.support.errors import ModelError  # noqa: E402

nn = torch.nn


class Network(nn.Module):
    """A small convolutional network with an activation in place, whose result is nested."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.head = nn.Linear(4, 2)

    def forward(self, image):
        """Logits, and the features that they come from."""
        features = self.body(image)
        return {"logits": self.head(features.mean((2, 3))), "features": [features, features[:, 0]]}


class Attention(nn.Module):
    """One layer of attention with shapes taken from its input."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.project = nn.Linear(8, 24)

    def forward(self, x):
        """Attention, and tensors whose sizes are those of the input."""
        batch, tokens, width = x.shape
        query, key, value = self.project(x).view(batch, tokens, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        made = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        made = made.transpose(1, 2).reshape(batch, tokens, width)
        return made + torch.arange(tokens)[:, None], x.new_zeros(batch, tokens * 2), torch.cat([x, made], 1)


@pytest.fixture(scope="module")
def network():
    """A network, its input, and what it was exported to."""
    model = Network().eval()
    image = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    return model, image, torch.export.export(model, (image,))


def test_weights_inputs_and_results_have_names(network):
    """Weights are called as in the state_dict, inputs as their placeholders, results as their places."""
    module, params = from_exported_program(network[2])
    names = [variable.name_hint for variable in module["main"].params]
    assert names[0] == "image" and set(names[1:]) == set(params)
    assert {"body.0.weight", "body.1.running_mean", "head.bias"} <= params.keys()
    assert module["main"].attrs["output_tensor_names"] == ["logits", "features.0", "features.1"]


def test_weights_share_their_memory(network):
    """A weight that changes in PyTorch changes here."""
    model, _, program = network
    _, params = from_exported_program(program)
    before = params["head.bias"].numpy().copy()
    with torch.no_grad():
        program.state_dict["head.bias"].add_(1.0)
    changed = params["head.bias"].numpy().copy()
    with torch.no_grad():
        program.state_dict["head.bias"].sub_(1.0)
    assert np.allclose(changed, before + 1)


def test_frozen_weights_are_constants(network):
    """The module then takes its inputs alone, and computes the same."""
    model, image, program = network
    module, params = from_exported_program(program, freeze_params=True)
    assert not params and len(module["main"].params) == 1
    found = run(module, {}, [image])
    assert np.allclose(found[0], array(model(image)["logits"]), atol=1e-5)


def test_compiled_code_agrees(network):
    """Through the graph executor."""
    model, image, program = network
    module, params = from_exported_program(program)
    found = run(module, params, [image], "graph")
    for one, other in zip(found, leaves(model(image)), strict=True):
        assert np.allclose(one, array(other), atol=1e-5)


def test_open_dimensions_stay_open():
    """One module serves for other sizes than those of the export; a shape that is given fixes them."""
    model = Attention().eval()
    batch, tokens = torch.export.Dim("batch", max=8), torch.export.Dim("tokens", max=16)
    program = torch.export.export(model, (torch.randn(2, 5, 8),), dynamic_shapes=({0: batch, 1: tokens},))
    module, params = from_exported_program(program)
    for shape in ((3, 7, 8), (1, 2, 8)):
        x = torch.randn(*shape)
        for one, other in zip(run(module, params, [x]), leaves(model(x)), strict=True):
            assert one.shape == tuple(other.shape) and np.allclose(one, array(other), atol=1e-5)
    fixed, _ = from_exported_program(program, {"x": (3, 7, 8)})
    assert fixed["main"].ret_type.fields[0].concrete_shape == (3, 7, 8)
    with pytest.raises(ModelError, match="was exported with the shape"):
        from_exported_program(program, {"x": (3, 7, 9)})
    with pytest.raises(ModelError, match="has no input 'y'"):
        from_exported_program(program, {"y": (3, 7, 8)})


def test_sizes_that_follow_from_values():
    """A tensor's element as a size, and as many results as elements hold."""

    class Sized(nn.Module):
        def forward(self, x, count):
            size = count.item()
            torch._check(size >= 0)
            torch._check(size <= x.shape[0])
            return x[:size].sum() + size, x[x > 0], torch.full((2,), size)

    check(Sized(), [torch.randn(5), torch.tensor(3)])


def test_open_sizes_are_compiled():
    """By the virtual machine."""

    class Flat(nn.Module):
        def forward(self, x):
            return x * 2, x.reshape(x.shape[0] * 3), torch.arange(x.shape[0])

    count = torch.export.Dim("count", min=2, max=64)
    check(Flat(), [torch.randn(6, 3)], "vm", ({0: count},))


# Writing


def test_buffers_that_are_written_are_results():
    """The new value follows the results; the caller hands it in the next time."""

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen.add_(1)
            return x + self.seen

    module, params = from_exported_program(torch.export.export(Counter(), (torch.ones(3),)))
    assert module["main"].attrs["output_tensor_names"][1] == "mutated.seen"
    assert set(params) == {"seen"}
    found = run(module, params, [torch.ones(3)])
    assert np.allclose(found[0], 2) and np.allclose(found[1], 1)


def test_writes_through_views():
    """What is written through one name is read through another."""

    class Written(nn.Module):
        def forward(self, x):
            y = x * 1
            first = y[:, 0]
            first.mul_(10)
            y.view(-1)[1] = 7.0
            other = y.relu()
            return y, first, other

    check(Written(), [torch.randn(2, 3)])


def test_inputs_that_are_written_are_results():
    """Under their names, after the results."""

    class Doubled(nn.Module):
        def forward(self, x):
            x.mul_(2)
            return x + 1

    module, params = from_exported_program(torch.export.export(Doubled(), (torch.ones(2),)))
    found = run(module, params, [torch.ones(2)])
    assert module["main"].attrs["output_tensor_names"][1] == "mutated.x"
    assert np.allclose(found[0], 3) and np.allclose(found[1], 2)


# Control flow


class Branches(nn.Module):
    """One of two functions."""

    def forward(self, x):
        """Which one the data decide."""
        return torch.cond(x.sum() > 0, lambda x: (x * 2, x.sum()), lambda x: (x - 1, x.max()), (x,))


class Loop(nn.Module):
    """A loop whose number of steps is data."""

    def forward(self, count, x):
        """As long as the counter is positive."""
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda i, y: i > 0, lambda i, y: (i - 1, y * 1.5), (count, x))


class Scanned(nn.Module):
    """A step for each row."""

    def forward(self, x):
        """Running sums, and products with them."""
        from torch._higher_order_ops.scan import scan

        return scan(lambda c, y: (c + y, c * y), x[0] * 0, x, dim=0)


class Mapped(nn.Module):
    """A function of each row."""

    def forward(self, x, y):
        """Independent of the others."""
        from torch._higher_order_ops.map import map as over_rows

        return over_rows(lambda row, other: row.sin() + other, x, y)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_branches(sign):
    """Either is taken."""
    check(Branches(), [torch.full((3,), sign)])


def test_loops():
    """While a condition holds, over rows written out, and over more rows than are written out."""
    check(Loop(), [torch.tensor(4), torch.randn(3)])
    check(Scanned(), [torch.randn(4, 3)])
    check(Scanned(), [torch.randn(70, 3) * 0.1])
    check(Mapped(), [torch.randn(4, 3), torch.randn(3)])


def test_control_flow_is_compiled():
    """By the virtual machine."""
    check(Branches(), [torch.ones(3)], "vm")
    check(Loop(), [torch.tensor(2), torch.ones(3)], "vm")


# Types of elements


def test_half_precision_weights():
    """bfloat16 goes through DLPack as well."""
    model = nn.Linear(4, 3, dtype=torch.bfloat16)
    module, params = from_exported_program(
        torch.export.export(model, (torch.ones(2, 4, dtype=torch.bfloat16),))
    )
    assert str(params["weight"].dtype) == "bfloat16"
    assert str(module["main"].ret_type.dtype) == "bfloat16"


# Errors


def test_what_training_draws_at_random_is_refused():
    """With what to do about it."""
    program = torch.export.export(nn.Dropout(0.5).train(), (torch.randn(2, 3),))
    with pytest.raises(ModelError, match=r"model.eval\(\)"):
        from_exported_program(program)


def test_statistics_that_training_changes_are_results():
    """Batch normalisation in training mode uses those of the batch, and hands on the running ones."""
    model = nn.BatchNorm1d(3).train()
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    module, params = from_exported_program(torch.export.export(model, (x,)))
    found = run(module, params, [x])
    names = module["main"].attrs["output_tensor_names"]
    wanted = model(x)
    assert np.allclose(found[0], array(wanted), atol=1e-5)
    for name in ("running_mean", "running_var"):
        assert np.allclose(found[names.index(f"mutated.{name}")], array(getattr(model, name)), atol=1e-5)


def test_views_of_memory_in_another_order_are_refused():
    """Where elements are in memory is PyTorch's business."""

    class Strided(nn.Module):
        def forward(self, x):
            return x.t().as_strided((2, 2), (1, 2))

    with pytest.raises(ModelError, match="not contiguous"):
        from_exported_program(torch.export.export(Strided(), (torch.randn(3, 2),)))


def test_one_error_names_all_unsupported_operators():
    """Before anything is converted."""

    class Exotic(nn.Module):
        def forward(self, x):
            return torch.linalg.eigh(x)[0] + torch.linalg.qr(x)[0].sum(), torch.special.airy_ai(x)

    with pytest.raises(UnsupportedOperators) as error:
        from_exported_program(torch.export.export(Exotic(), (torch.eye(3),)))
    found = str(error.value)
    assert "eigh" in found and "qr" in found and "airy_ai" in found


def test_other_objects_are_refused():
    """A module has to be exported first."""
    with pytest.raises(ModelError, match="torch.export.export"):
        from_exported_program(nn.Linear(2, 2))
    with pytest.raises(ModelError, match="GraphModule"):
        from_fx(nn.Linear(2, 2))


# Graphs of compiler backends


def test_graph_modules_with_symbolic_sizes():
    """Placeholders that are numbers are scalars; those that are named in ``params`` are weights."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def function(x, weight):
        return x @ weight + x.shape[0], None, x.sum(0)

    x, weight = torch.randn(4, 3), torch.randn(3, 3)
    graph = make_fx(function, tracing_mode="symbolic")(x, weight)
    names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    module, params = from_fx(graph, {names[1]: weight})
    found = run(module, params, [x])
    assert len(found) == 2 and np.allclose(found[0], array(function(x, weight)[0]), atol=1e-5)


# Files


def test_saved_programs_are_read(network, tmp_path):
    """By their suffix, and by what is in them."""
    model, image, program = network
    path = tmp_path / "model.pt2"
    torch.export.save(program, str(path))
    module, params = relay.frontend.import_model(str(path))
    assert np.allclose(run(module, params, [image])[0], array(model(image)["logits"]), atol=1e-5)


def test_checkpoints_are_refused_unread(tmp_path):
    """Pickles are not loaded; the error says how to save the model."""
    path = tmp_path / "model.pth"
    torch.save(nn.Linear(2, 2).state_dict(), path)
    with pytest.raises(FormatError, match=r"pickles are not loaded: .*torch.export.save"):
        relay.frontend.import_model(str(path))
    path.write_bytes(b"\x80\x02pickle")
    with pytest.raises(FormatError, match="not a saved PyTorch program"):
        relay.frontend.import_model(str(path))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("notes.txt", b"")
    path.write_bytes(packed.getvalue())
    with pytest.raises(FormatError, match="without a program"):
        relay.frontend.import_model(str(path))


class Decoder(nn.Module):
    """A step of a decoder: rotary embeddings, caches of fixed capacity that it writes to, heads that share keys."""

    def __init__(self, form):
        super().__init__()
        torch.manual_seed(0)
        self.form = form
        self.project = nn.Linear(16, 32)
        self.register_buffer("keys", torch.zeros(1, 2, 12, 4))
        self.register_buffer("values", torch.zeros(1, 2, 12, 4))

    def write(self, cache, place, new):
        """One row of a cache, in one of the ways in which models say it."""
        if self.form == "index_copy":
            cache.index_copy_(2, place, new)
        elif self.form == "assignment":
            cache[:, :, place] = new
        elif self.form in ("slice", "select"):
            first = place.item()
            torch._check(first >= 0)
            torch._check(first < cache.shape[2] - 1)
            if self.form == "slice":
                cache[:, :, first : first + 1] = new
            else:
                cache.copy_(torch.select_scatter(cache, new[:, :, 0], 2, first))
        else:
            cache.scatter_(2, place.view(1, 1, 1, 1).expand_as(new), new)

    def turned(self, data, place):
        """Halves of the features turned by an angle of the position."""
        angle = place * torch.tensor([1.0, 0.1])
        cosines, sines = (torch.cat([one, one], -1) for one in (angle.cos(), angle.sin()))
        first, second = data.chunk(2, -1)
        return data * cosines + torch.cat([-second, first], -1) * sines

    def forward(self, x, place):
        """Attention of one token to those before it."""
        query, key, value = self.project(x).split([16, 8, 8], -1)
        query = self.turned(query.view(1, 1, 4, 4).transpose(1, 2), place)
        self.write(self.keys, place, self.turned(key.view(1, 1, 2, 4).transpose(1, 2), place))
        self.write(self.values, place, value.view(1, 1, 2, 4).transpose(1, 2))
        seen = torch.arange(12) <= place
        keys, values = (cache.repeat_interleave(2, 1) for cache in (self.keys, self.values))
        return nn.functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=seen.view(1, 1, 1, 12)
        )


@pytest.mark.parametrize("form", ["index_copy", "assignment", "scatter", "slice", "select"])
def test_caches_in_place(form):
    """The buffers that a program writes to can be the memory of its results: nothing is copied from step to step."""
    model = Decoder(form).eval()
    tokens = torch.randn(5, 1, 16, generator=torch.Generator().manual_seed(1))
    program = torch.export.export(model, (tokens[0], torch.tensor([0])))
    module, params = from_exported_program(program)
    caches = {name: params.pop(name) for name in ("keys", "values")}
    in_place = {name: f"mutated.{name}" for name in caches}
    built = relay.build(module, "llvm", params=params, in_place=in_place)
    executor = built["default"](tvm.cpu())
    for name, value in caches.items():
        assert executor.updates_input(name)
        executor.set_input(name, value)
    with torch.no_grad():
        for place, token in enumerate(tokens):
            executor.set_input("x", token.numpy())
            executor.set_input("place", np.array([place]))
            executor.run()
            wanted = model(token, torch.tensor([place]))
            assert np.allclose(executor.get_output(0).numpy(), array(wanted), atol=1e-5)
            for name in caches:
                assert np.allclose(executor.get_input(name).numpy(), array(getattr(model, name)), atol=1e-5)
