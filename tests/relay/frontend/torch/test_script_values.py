"""Lists, tuples, dictionaries, optional values, numbers and strings."""

import pytest
import torch
from tests.relay.frontend.torch.script_models import check, imported, numbers, scripted, traced

from tilewright import relay
from tilewright.support.errors import ModelError


def lists(x):
    found = [x, x + 1]
    found.append(x * 2)
    found.insert(0, x - 1)
    last = found.pop()
    found[1] = last
    some = found[1:]
    found.reverse()
    found += [x]
    return torch.cat(found, 1), torch.stack(some), len(found)


def dictionaries(x):
    found = {"a": x, "b": x + 1}
    found["c"] = found["a"] * found["b"]
    total = x
    for _, value in found.items():
        total = total + value
    return total, len(found), "d" in found, found


def strings(x):
    mode = "bi" + "linear"
    if mode == "bilinear" and f"{1}-{2}" == "1-2":
        x = x + len(mode)
    return x


def arithmetic(x):
    size = x.size(0) * x.size(1)
    return (
        x.reshape([size]) / float(x.numel())
        + int(2.7)
        + max(2, x.size(0))
        + min([3, 4])
        + 7 // 2
        - 7 % 4
        + 2**3
    )


def nested_tuples(x):
    pair = (x, (x + 1, 3))
    one, (two, three) = pair
    return (one + three, (two,)), pair[1][0]


def optional_argument(x, y: torch.Tensor | None = None):
    if y is None:
        return x + 1
    return x + y


def number_of_a_tensor(x):
    factor = x.sum().item()
    return x * factor + int(x[0, 1]) + float(x.max())


PROGRAMS = [lists, dictionaries, strings, arithmetic, nested_tuples, number_of_a_tensor]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values(program):
    """Values that are not tensors are those of Python."""
    check(scripted(program), numbers(3, 4))


def test_optional_argument():
    """One that is left out is None."""
    check(scripted(optional_argument), numbers(3, 4), infos=[("input0", (3, 4))])
    check(scripted(optional_argument), numbers(3, 4), numbers(3, 4))


def test_sizes_in_a_trace_follow_the_input():
    """A trace computes shapes with tensors; for a shape that is known all of it folds."""

    def flattened(x):
        return x.reshape(x.shape[0], x.shape[1] * x.shape[2]).expand(x.shape[0] + 0, -1)

    script = traced(flattened, numbers(2, 3, 4))
    check(script, numbers(5, 2, 3), infos=[("input0", (5, 2, 3))])
    module, _ = imported(script, [numbers(5, 2, 3)])
    assert "shape_of" not in str(module)


def test_open_dimension():
    """Sizes that only the program knows are computed by it."""

    def program(x):
        return x.reshape(x.size(0) * x.size(1)) * x.size(0)

    check(scripted(program), numbers(3, 4), infos=[("input0", (relay.Any(), 4))])


def indices(x, place: int):
    return x[place], [x, x + 1, x * 2][place]


def test_numbers_as_inputs():
    """A number that is given is known; one with the type of a scalar is an input."""
    script = scripted(indices)
    module, _ = imported(script, [], infos=[("input0", (3, 4)), ("place", 1)])
    assert [one.name_hint for one in module["main"].params] == ["input0"]
    module, _ = imported(script, [], infos=[("input0", (3, 4)), ("place", ())])
    assert [one.name_hint for one in module["main"].params] == ["input0", "place"]


def tuple_and_list(pair: tuple[torch.Tensor, torch.Tensor], several: list[torch.Tensor]):
    return pair[0] + pair[1], several[1] * 2, len(several)


def test_tuples_and_lists_as_inputs():
    """A tuple is one parameter, a list one of the prelude's type."""
    infos = [("pair", ((2,), (2,))), ("several", [(3,), (3,)])]
    module, _ = imported(scripted(tuple_and_list), [], infos=infos)
    kinds = [str(one.type_annotation) for one in module["main"].params]
    assert kinds[0].startswith("(Tensor[(2)")
    assert kinds[1].startswith("List[")


def missing_key(x):
    found = {"a": x}
    return found["b"]


def test_missing_key():
    """The error says which keys there are."""
    with pytest.raises(ModelError, match=r"no key 'b'; it has \['a'\]"):
        imported(scripted(missing_key), [numbers(2)])
