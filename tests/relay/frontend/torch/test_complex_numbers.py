"""Complex tensors inside of exported programs, whose inputs and results are real."""

import pytest

torch = pytest.importorskip("torch")

from tests.relay.frontend.torch.running import check, check_all  # noqa: E402

from tilewright.relay.frontend import from_exported_program, from_pytorch  # noqa: E402
from tilewright.support.errors import ModelError  # noqa: E402


def real_results(function):
    """A function with the parts of its complex results along a last axis."""

    def parts(*given):
        return [
            torch.view_as_real(one.resolve_conj()) if one.is_complex() else one for one in function(*given)
        ]

    return parts


def real(function):
    """A function of complex tensors as one of the tensors of their parts."""
    return real_results(lambda *given: function(*map(torch.view_as_complex, given)))


@pytest.fixture(scope="module")
def numbers():
    """Two complex tensors by their parts, the second broadcast over the first."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(3, 4, 2, generator=generator), torch.randn(4, 2, generator=generator)]


def test_arithmetic(numbers):
    """With tensors and numbers, real and complex ones."""
    functions = {
        "sums": lambda x, y: (x + y, x - y, 2 - x, torch.add(x, y, alpha=3), x + x.real, x.imag - y),
        "products": lambda x, y: (x * y, x * 1j, (2 + 3j) * y, x * 2.5, x * y.real, x.square(), -x),
        "quotients": lambda x, y: (x / y, x / 2, x / y.imag, 1 / x, x.reciprocal()),
        "conjugates": lambda x, y: (x.conj() * y, x.mH.conj(), x.conj().imag),
        "size and angle": lambda x, y: (x.abs(), x.angle(), x.sgn(), x.abs() ** 2),
        "powers": lambda x, y: (x**2, x**3, x**0.5, x.exp(), x.log(), x.sqrt(), y ** (1 + 2j)),
        "comparisons": lambda x, y: (x == y, x != y, x == x),
        "polar": lambda x, y: (torch.polar(x.abs(), y.angle()), torch.complex(x.real, y.imag.expand(3, 4))),
    }
    check_all({name: real(one) for name, one in functions.items()}, numbers, rtol=1e-4, atol=1e-5)


def test_moved_elements(numbers):
    """Views, joins, choices and paddings; real tensors among them count as complex."""
    functions = {
        "views": lambda x, y: (
            x.reshape(2, 6),
            x.T,
            x[1:, ::2],
            x[None].expand(2, 3, 4),
            *x.unbind(0),
            x.flip(0),
        ),
        "joins": lambda x, y: (torch.cat([x, y[None]]), torch.stack([y, y.real]), torch.cat([y.real, y])),
        "choices": lambda x, y: (torch.where(x.real > 0, x, y), x[torch.tensor([2, 0])], x.roll(1, 0)),
        "padding": lambda x, y: (torch.nn.functional.pad(x, (1, 2)), torch.zeros_like(x) + y),
        "sums": lambda x, y: (
            x.sum(),
            x.mean(0),
            x.cumsum(1),
            y.sum(-1, keepdim=True, dtype=torch.complex128),
        ),
        "types": lambda x, y: (x.to(torch.complex128), x.real.to(torch.complex64), y.imag + 0j),
        "filled": lambda x, y: (
            torch.full((2,), 1 + 2j) + y[:2],
            x.new_ones(3, 4) * x,
            torch.zeros(4, dtype=y.dtype),
        ),
    }
    check_all({name: real(one) for name, one in functions.items()}, numbers)


def test_matrix_products(numbers):
    """Of matrices, stacks, vectors and named axes."""
    functions = {
        "matrices": lambda x, y: (x @ x.T, x.conj() @ x.T, x @ y, torch.mm(x, x.mH), torch.outer(y, y)),
        "stacks": lambda x, y: (torch.bmm(x[None], x.T[None]), x[None] @ x.mH),
        "einsum": lambda x, y: (torch.einsum("ij,j->i", x, y), torch.einsum("ij->ji", x)),
    }
    check_all({name: real(one) for name, one in functions.items()}, numbers, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def signals():
    """Real signals."""
    return [torch.randn(2, 6, 15, generator=torch.Generator().manual_seed(1))]


def test_fourier_transforms(signals):
    """Over one axis and several, cut off and padded, by every normalisation."""
    fft = torch.fft
    functions = {
        "of real numbers": lambda x: (fft.rfft(x), fft.rfft(x, 8, 1, "ortho"), fft.rfftn(x, norm="forward")),
        "of all": lambda x: (
            fft.fft(x),
            fft.ifft(x, 20),
            fft.fft2(x),
            fft.ifftn(x, norm="ortho"),
            fft.ihfft(x),
        ),
        "back": lambda x: (
            fft.irfft(fft.rfft(x), 15),
            fft.irfft2(fft.rfft2(x)),
            fft.irfft(fft.rfft(x)),
            fft.hfft(x),
        ),
        "shifted": lambda x: (fft.fftshift(fft.fft(x)), fft.ifft(fft.ifftshift(fft.fft(x), dim=-1))),
    }
    check_all({name: real_results(one) for name, one in functions.items()}, signals, rtol=1e-4, atol=1e-4)


def test_short_time_transforms():
    """There and back, with a window, and as pairs of floats."""
    signal = torch.randn(2, 400, generator=torch.Generator().manual_seed(2))
    window = torch.hann_window(64)

    def there(x):
        found = torch.stft(x, 64, 16, window=window, return_complex=True)
        return [found.abs(), torch.view_as_real(found)]

    def back(x):
        found = torch.stft(x, 64, 16, window=window, return_complex=True)
        return [torch.istft(found * 2, 64, 16, window=window, length=400)]

    check_all({"there": there, "back": back}, [signal], rtol=1e-4, atol=1e-4)


class Rotary(torch.nn.Module):
    """Rotary embeddings as a buffer of complex numbers."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(6.0), 10000 ** (-torch.arange(0, 8, 2) / 8))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, query):
        """A batch of heads of queries, turned by their positions."""
        pairs = torch.view_as_complex(query.reshape(*query.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.turns).flatten(-2)


def test_rotary_embeddings_are_compiled():
    """Complex buffers are constants."""
    query = torch.randn(2, 3, 6, 8, generator=torch.Generator().manual_seed(3))
    check(Rotary(), [query], executor="graph")


def test_dynamic_batches():
    """Transforms of a known axis, in a tensor of open size."""

    class Mixing(torch.nn.Module):
        def forward(self, x):
            """The Fourier mixing of FNet."""
            return torch.fft.fft(torch.fft.fft(x), dim=1).real

    tokens = torch.randn(2, 6, 10, generator=torch.Generator().manual_seed(4))
    shapes = {"x": {0: torch.export.Dim("batch", min=2, max=16)}}
    check(Mixing(), [tokens], executor="vm", dynamic_shapes=shapes, rtol=1e-4, atol=1e-4)


class Refused(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        """The function."""
        return self.function(x)


def imported(function):
    program = torch.export.export(Refused(function), (torch.randn(4, 4),))
    return from_exported_program(program)


def test_complex_results_are_refused():
    """The error says what to return instead."""
    with pytest.raises(ModelError, match="return its parts instead .torch.view_as_real"):
        imported(torch.fft.fft)


def test_unsupported_operators_are_named_as_complex_ones():
    """Sine is supported, but not of complex numbers."""
    with pytest.raises(ModelError, match="aten::sin of complex numbers"):
        imported(lambda x: torch.fft.fft(x).sin().real)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(0, dtype=torch.complex64).abs(),
        lambda x: torch.zeros_like(x, dtype=torch.complex64).real,
    ],
)
def test_conversions_on_the_way_are_refused(function):
    """A sum of real numbers as a complex one has no imaginary part, and is written with ``to`` first."""
    with pytest.raises(ModelError, match="complex numbers are not supported here"):
        imported(function)


@pytest.mark.parametrize("function", [torch.fft.fft, lambda x: torch.fft.fft(x).abs()])
def test_scripts_are_told_to_export(function):
    """TorchScript's tensors are views of memory, which complex ones here are not."""
    script = torch.jit.trace(Refused(function), torch.randn(4, 4))
    with pytest.raises(ModelError, match="not supported in TorchScript: export the model"):
        from_pytorch(script, [("x", (4, 4))])


def test_inputs_are_refused():
    """The error says what to do."""
    program = torch.export.export(Refused(torch.abs), (torch.randn(4, dtype=torch.complex64),))
    with pytest.raises(ModelError, match="real and imaginary parts"):
        from_exported_program(program)
