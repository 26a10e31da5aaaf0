"""Every family of converters against eager PyTorch, one export a family."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from tests.relay.frontend.torch.running import check_all  # noqa: E402


def normal(*shape, seed=0):
    """Numbers around zero."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(*shape, low=0, high=9, seed=0):
    """Integers from ``low`` up to ``high``, which is left out."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def named(*functions):
    """Functions of torch by their names."""
    return {name: getattr(torch, name) for name in functions}


def test_functions_of_one_tensor():
    """Mathematical functions and roundings of floats."""
    functions = named(
        "abs",
        "neg",
        "sign",
        "ceil",
        "floor",
        "round",
        "trunc",
        "frac",
        "exp",
        "exp2",
        "expm1",
        "sigmoid",
        "tanh",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "atan",
        "asinh",
        "erf",
        "erfc",
        "square",
        "reciprocal",
        "isnan",
        "isinf",
        "isfinite",
        "isposinf",
        "signbit",
        "logical_not",
        "sinc",
        "deg2rad",
        "rad2deg",
        "positive",
        "sgn",
        "isreal",
        "isneginf",
        "angle",
        "nan_to_num",
    )
    check_all(functions, [normal(3, 4)])


def test_functions_of_positive_numbers():
    """Logarithms, roots and inverse functions."""
    functions = named("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "acos", "asin", "atanh", "logit")
    functions["acosh"] = lambda x: torch.acosh(x + 1)
    functions["small expm1"] = lambda x: torch.expm1(x * 1e-6)
    functions["small log1p"] = lambda x: torch.log1p(x * 1e-6)
    check_all(functions, [normal(3, 4).abs().clamp(0.05, 0.95)])


def test_special_functions():
    """Gamma's logarithm and its derivative, the inverse error function and the quantiles of the normal distribution."""
    functions = {name: getattr(torch.special, name) for name in ("gammaln", "digamma", "erfinv", "ndtri")}
    functions["multigammaln"] = lambda x: torch.special.multigammaln(x.abs() + 2, 3)
    numbers = torch.tensor([0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 2.5, 30.0, -0.4, -3.7])
    check_all(functions, [numbers], rtol=1e-4, atol=1e-5)


def test_special_values():
    """NaN, infinities and zeros of either sign."""
    values = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.5, -2.5, 0.5])
    functions = named(
        "isnan", "isinf", "isfinite", "signbit", "nan_to_num", "sign", "round", "expm1", "log1p"
    )
    functions["maximum"] = lambda x: torch.maximum(x[:, None], x[None, :])
    functions["fmax"] = lambda x: torch.fmax(x[:, None], x[None, :])
    functions["atan2"] = lambda x: torch.atan2(x[:, None], x[None, :])
    functions["xlogy"] = lambda x: torch.xlogy(x[:, None], x[None, :])
    functions["copysign"] = lambda x: torch.copysign(x[:, None], x[None, :])
    functions["softplus"] = F.softplus
    functions["sort"] = lambda x: torch.sort(x)[0]
    check_all(functions, [values])


def test_arithmetic():
    """Two tensors, and a tensor and a number; numbers do not decide on the type."""
    functions = named(
        "add",
        "sub",
        "mul",
        "div",
        "floor_divide",
        "remainder",
        "fmod",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "atan2",
        "hypot",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
        "copysign",
        "logaddexp",
        "logaddexp2",
        "heaviside",
        "isclose",
        "ldexp",
    )
    functions |= {
        "add alpha": lambda x, y: torch.add(x, y, alpha=2),
        "rsub": lambda x, y: 2 - x,
        "scalars": lambda x, y: (x + 1, x * 2.5, x / 3, x // 0.7, x % 0.3, x > 0, 1 / (y + 5)),
        "powers": lambda x, y: (x**2, x**3, x.abs() ** 0.5, x.abs() ** y, 2**x, x.abs() ** -1),
        "trunc div": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        "floor div": lambda x, y: torch.div(x, y, rounding_mode="floor"),
        "lerp": lambda x, y: torch.lerp(x, y, 0.3),
        "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
        "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=0.5),
        "where": lambda x, y: torch.where(x > 0, x, y),
        "where number": lambda x, y: torch.where(x > 0, x, 1.0),
        "clamp": lambda x, y: (
            x.clamp(-0.5, 0.5),
            x.clamp(min=0),
            x.clamp(max=y),
            x.clamp_min(0.1),
            x.clamp(1, -1),
        ),
        "round decimals": lambda x, y: torch.round(x, decimals=2),
        "xlogy": lambda x, y: torch.xlogy(x, y.abs()),
    }
    check_all(functions, [normal(3, 4), normal(3, 4, seed=1)])


def test_types_of_results():
    """Integers, floats and truth values meet as torch.result_type has it, and bits are kept."""
    functions = {
        "int + float": lambda i, b, f: i + f,
        "int + number": lambda i, b, f: (i + 1, i + 1.5, i * True, i / 2, i // 2, i % 3, i**2),
        "int / int": lambda i, b, f: i / (i + 1),
        "bool": lambda i, b, f: (b + b, b * b, b & b, b | b, b ^ b, ~b, b + 1, b.sum(), b.any(), b.all(0)),
        "bits": lambda i, b, f: (i & 3, i | 4, i ^ 5, ~i, i << 1, i >> 1),
        "scalar tensor": lambda i, b, f: f + torch.tensor(2.0, dtype=torch.float64),
        "narrow": lambda i, b, f: i.to(torch.int8) + i.to(torch.uint8),
        "float16": lambda i, b, f: f.half() + 1,
        "bfloat16": lambda i, b, f: f.bfloat16() * f.half(),
        "comparison": lambda i, b, f: i > 2.5,
        "sqrt of int": lambda i, b, f: torch.sqrt(i),
        "sum": lambda i, b, f: (
            i.sum(),
            i.prod(1),
            i.to(torch.int32).sum(0),
            i.cumsum(1),
            i.amax(),
            i.max(1)[0],
        ),
        "to": lambda i, b, f: (f.to(torch.int64), f.bool(), i.float(), b.long(), f.double(), i.type_as(f)),
        "negative division": lambda i, b, f: ((i - 5) // 3, (i - 5) % 3, torch.fmod(i - 5, 3)),
    }
    inputs = [integers(3, 4), integers(3, 4, high=2).bool(), normal(3, 4)]
    check_all(functions, inputs, rtol=1e-2)


def test_activations():
    """In their functional forms."""
    names = (
        "relu",
        "relu6",
        "elu",
        "celu",
        "selu",
        "gelu",
        "silu",
        "mish",
        "softplus",
        "logsigmoid",
        "hardsigmoid",
        "hardswish",
        "hardtanh",
        "hardshrink",
        "softshrink",
        "tanhshrink",
        "softsign",
        "leaky_relu",
    )
    functions = {name: getattr(F, name) for name in names}
    functions |= {
        "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
        "glu": lambda x: F.glu(x, 1),
        "threshold": lambda x: F.threshold(x, 0.1, -2.0),
        "softmax": lambda x: (x.softmax(0), x.softmax(-1), F.log_softmax(x, 0), F.log_softmax(x, 1)),
        "prelu": lambda x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4])),
        "dropout": lambda x: F.dropout(x, 0.5, training=False),
        "rrelu": lambda x: F.rrelu(x, training=False),
        "softplus beta": lambda x: F.softplus(x, beta=2.0, threshold=1.0),
    }
    check_all(functions, [normal(3, 4) * 3])


def test_reductions():
    """Over all axes, some, and with the axes kept."""
    names = (
        "sum",
        "mean",
        "amax",
        "amin",
        "std",
        "var",
        "logsumexp",
        "all",
        "any",
        "argmax",
        "argmin",
        "prod",
    )
    functions = {}
    for name in names:
        function = getattr(torch, name)
        functions[f"{name} 1"] = lambda x, function=function: function(x, 1)
        functions[f"{name} -1 kept"] = lambda x, function=function: function(x, -1, keepdim=True)
    functions |= {
        "whole": lambda x: (
            x.sum(),
            x.mean(),
            x.max(),
            x.min(),
            x.std(),
            x.var(),
            x.prod(),
            x.argmax(),
            x.norm(),
        ),
        "axes": lambda x: (
            x.sum((0, 2)),
            x.mean((-1, 0), keepdim=True),
            x.amax((1, 2)),
            x.var((0, 1), correction=0),
        ),
        "max": lambda x: (*x.max(1), *x.min(2, keepdim=True)),
        "moments": lambda x: (*torch.var_mean(x, 1), *torch.std_mean(x, (0, 2), unbiased=False)),
        "norms": lambda x: (
            x.norm(1, 0),
            x.norm(3, -1),
            x.norm(float("inf"), 1),
            torch.linalg.norm(x, dim=(1, 2)),
        ),
        "matrix norms": lambda x: (
            torch.linalg.matrix_norm(x, 1),
            torch.linalg.matrix_norm(x, float("inf")),
            torch.linalg.matrix_norm(x),
        ),
        "counts": lambda x: (torch.count_nonzero(x > 0, 1), *torch.aminmax(x, dim=0)),
        "scans": lambda x: (
            x.cumsum(1),
            x.cumprod(2),
            torch.logcumsumexp(x, 0),
            *x.cummax(1),
            *x.cummin(2),
            torch.diff(x, dim=1),
            torch.diff(x, 0, 1, x, x),
        ),
    }
    check_all(functions, [normal(2, 3, 4)], rtol=1e-4)


def test_matrices():
    """Products of vectors, matrices and stacks of them."""
    functions = {
        "mm": lambda a, b, v, s: a @ b,
        "mv": lambda a, b, v, s: (a @ v, v @ b, v @ v, torch.outer(v, v), torch.dot(v, v)),
        "stacks": lambda a, b, v, s: (s @ b, a @ s.mT, s @ s.mT, s @ v, torch.matmul(s[:, None], s.mT)),
        "add": lambda a, b, v, s: (
            torch.addmm(v[:3], a, b, beta=0.5, alpha=2),
            torch.addmv(v[:3], a, v),
            torch.baddbmm(s[:, :, :2], s, s[:, :2].mT),
        ),
        "einsum": lambda a, b, v, s: (
            torch.einsum("ij,jk->ik", a, b),
            torch.einsum("bij,jk->bik", s, b),
            torch.einsum("...i,i->...", s, v),
            torch.einsum("ii->i", a[:, :3]),
        ),
        "linear": lambda a, b, v, s: (
            F.linear(s, a, v[:3]),
            F.linear(v, a),
            F.bilinear(a, a, s[:, :, :4].new_ones(2, 4, 4)),
        ),
        "distances": lambda a, b, v, s: (
            torch.cdist(s, s),
            torch.pdist(a),
            F.cosine_similarity(s, a, -1),
            F.pairwise_distance(a, a + 1),
            torch.cross(a[:, :3], b[:3], dim=1),
        ),
    }
    check_all(functions, [normal(3, 4), normal(4, 3)[:, :3], normal(4), normal(2, 3, 4)], rtol=1e-4)


def test_views():
    """Shapes, permutations, joins and slices."""
    functions = {
        "reshapes": lambda x: (
            x.view(6, -1),
            x.reshape(-1),
            x.flatten(1),
            x.unflatten(3, (2, -1)),
            x.ravel(),
        ),
        "axes": lambda x: (
            x.squeeze(1),
            x.unsqueeze(-1),
            x.squeeze(),
            x[:, None],
            x.movedim(0, -1),
            x.swapaxes(0, 3),
        ),
        "permutations": lambda x: (
            x.permute(3, 0, 2, 1),
            x.transpose(0, -1),
            x.mT,
            x.flip(0, 2),
            torch.rot90(x, 1, (0, 2)),
        ),
        "expand": lambda x: (
            x.expand(-1, 5, -1, -1),
            x.repeat(2, 1, 1, 3),
            x.tile(2),
            x.repeat_interleave(3, dim=2),
        ),
        "slices": lambda x: (
            x[:, :, 1:],
            x[..., -2:],
            x[:, 0],
            x[1],
            x[..., ::2],
            x.narrow(3, 1, 2),
            x.select(2, -1),
        ),
        "parts": lambda x: (
            *x.split(2, 3),
            *x.chunk(3, 2),
            *x.unbind(0),
            *x.split([1, 3], 3),
            *x.tensor_split(3, 3),
        ),
        "joins": lambda x: (
            torch.cat([x, x], 1),
            torch.stack([x, x], -1),
            torch.hstack([x, x]),
            torch.cat([x, x.long()]),
        ),
        "roll": lambda x: (x.roll(1, 3), x.roll((1, -2), (2, 3)), x.roll(3)),
        "diagonals": lambda x: (
            x[0, 0].diagonal(),
            x.diagonal(1, 2, 3),
            torch.diag_embed(x[0, 0]),
            x[0, 0].tril(),
            x[0, 0].triu(1),
            torch.diag(x[0, 0]),
            torch.diag(x[0, 0, 0], 1),
            x[0, 0].trace(),
        ),
        "windows": lambda x: (
            x.unfold(3, 2, 1),
            F.unfold(x, 2, padding=1, stride=2),
            x.as_strided((2, 2), (4, 1), 1),
        ),
        "fold": lambda x: F.fold(x.reshape(2, 4, 3), (2, 4), 2, stride=(1, 1)),
        "padding": lambda x: (
            F.pad(x, (1, 2)),
            F.pad(x, (1, 1, 2, 0), value=3.0),
            F.pad(x, (-1, 1)),
            F.pad(x, (1, 2, 1, 1), "reflect"),
            F.pad(x[0], (1, 2), "replicate"),
            F.pad(x[0], (-3, 5), "replicate"),
            F.pad(x, (2, 1, 1, 0), "circular"),
        ),
        "meshes": lambda x: (
            *torch.meshgrid(x[0, 0, 0], x[0, 0, 1], indexing="ij"),
            torch.block_diag(x[0, 0], x[1, 0]),
        ),
    }
    check_all(functions, [normal(2, 1, 3, 4)])


def test_creation():
    """Tensors from numbers, in the default type and others."""
    functions = {
        "ranges": lambda x: (
            torch.arange(5),
            torch.arange(1, 4, 0.5),
            torch.arange(5, 0, -2),
            torch.linspace(0, 1, 7),
        ),
        "full": lambda x: (
            torch.full((2,), 3),
            torch.full((2,), 0.5),
            torch.ones(2),
            torch.zeros(2, dtype=torch.bool),
        ),
        "like": lambda x: (
            torch.zeros_like(x),
            torch.ones_like(x, dtype=torch.int64),
            torch.full_like(x, 2),
            x.new_ones(3),
        ),
        "matrices": lambda x: (
            torch.eye(3),
            torch.tril_indices(3, 3),
            torch.logspace(0, 2, 3),
            torch.hann_window(5),
        ),
        "one hot": lambda x: F.one_hot((x[0] > 0).long(), 3),
        "scalars": lambda x: (torch.tensor(3), torch.tensor([1.5, 2]), torch.scalar_tensor(2.0)),
    }
    check_all(functions, [normal(2, 3)])


def test_indexing():
    """Reads at indices, negative ones and masks among them."""
    functions = {
        "index": lambda x, i, m: (
            x[i],
            x[:, i],
            x[i, i],
            x[i[:, None], :, i],
            x[..., i],
            x[-1, i],
            x[None, i],
        ),
        "apart": lambda x, i, m: x[i, :, i],
        "masks": lambda x, i, m: (x[m], x.masked_select(m), torch.nonzero(m), *torch.where(m), x[:, m[0]]),
        "negative": lambda x, i, m: (x[i - 3], x.take(i - 3)),
        "select": lambda x, i, m: (x.index_select(1, i), x.take(i * 2), F.embedding(i, x[:, :, 0])),
        "gather": lambda x, i, m: (
            x.gather(1, i.expand(2, 1, 3).mT),
            torch.take_along_dim(x, i[None, :, None], 1),
        ),
        "fill": lambda x, i, m: (x.masked_fill(m, -1.0), x.masked_fill(m, torch.tensor(2.0))),
        "isin": lambda x, i, m: torch.isin(i, torch.tensor([0, 2])),
        "bag": lambda x, i, m: F.embedding_bag(i, x[:, :, 0], torch.tensor([0, 1])),
    }
    mask = normal(3, 3, 4, seed=3) > 0
    check_all(functions, [normal(3, 3, 4), torch.tensor([2, 0, 1]), mask])


def test_scattering():
    """Writes at indices in every mode."""
    functions = {
        "scatter": lambda x, i, s: (x.scatter(1, i, s), x.scatter(1, i, 2.0), x.scatter_add(1, i, s)),
        "reduce": lambda x, i, s: tuple(
            x.scatter_reduce(1, i, s, mode, include_self=own)
            for mode in ("sum", "prod", "mean", "amax", "amin")
            for own in (True, False)
        ),
        "index_put": lambda x, i, s: (
            x.index_put((i[0],), s[:1]),
            x.index_put((i[0], i[1]), s[0, :2]),
            x.index_put((i[0],), s[:1], accumulate=True),
            torch.ops.aten.index_put(x, [None, i[0]], s[:1, :2]),
            x.index_put((x > 0,), torch.tensor(5.0)),
        ),
        "along": lambda x, i, s: (
            x.index_add(0, i[0], s[:2], alpha=2),
            x.index_copy(1, i[0], s[:, :2]),
            x.index_fill(1, i[0], 3.0),
        ),
        "parts": lambda x, i, s: (
            x.select_scatter(s[0], 0, 1),
            x.slice_scatter(s[:2], 0, 1, 3),
            x.slice_scatter(s[:, :2], 1, 0, 4, 2),
            x.diagonal_scatter(s[0, :3]),
        ),
        "masked": lambda x, i, s: (
            x.masked_scatter(x > 0, s),
            x[0].masked_scatter(x > 0, s),
            x.put(i, s[:, :2]),
        ),
    }
    index = torch.tensor([[0, 1], [2, 1], [0, 2]])
    check_all(functions, [normal(3, 4), index, normal(3, 4, seed=1)])


def test_ordering():
    """Sorting, searching and counting."""
    functions = {
        "sort": lambda x, i: (
            *x.sort(),
            *x.sort(0, descending=True),
            x.argsort(1),
            *x.topk(2),
            *x.topk(2, 0, largest=False),
        ),
        "order": lambda x, i: (
            x.round().mode(1)[0],
            *x.kthvalue(2),
            *x.median(1),
            x.median(),
            *x.nanmedian(0),
            x.quantile(0.3, 1),
        ),
        "search": lambda x, i: (
            torch.searchsorted(x.sort()[0], x),
            torch.searchsorted(torch.tensor([0.0, 1.0]), x, right=True),
            torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
        ),
        "unique": lambda x, i: (*torch.unique(i, return_inverse=True, return_counts=True),),
        "counts": lambda x, i: (torch.bincount(i), torch.bincount(i, minlength=12), torch.histc(x, 4)),
    }
    check_all(functions, [normal(3, 4), integers(7)])


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank):
    """Plain, in groups, dilated, transposed, with padding by name, and without a batch."""
    conv, transposed = getattr(F, f"conv{rank}d"), getattr(F, f"conv_transpose{rank}d")
    kernel = (3,) * rank
    weight, grouped = normal(4, 4, *kernel, seed=1), normal(4, 2, *kernel, seed=2)
    bias = normal(4, seed=3)
    functions = {
        "plain": lambda x: conv(x, weight, bias, 2, 1),
        "groups": lambda x: conv(x, grouped, None, 1, 1, groups=2),
        "dilated": lambda x: conv(x, weight, None, 1, 2, 2),
        "names": lambda x: (
            conv(x, weight, padding="same"),
            conv(x, weight[..., :2], padding="same"),
            conv(x, weight, padding="valid"),
        ),
        "single": lambda x: conv(x[0], weight, bias),
        "transposed": lambda x: transposed(x, weight, bias, 2, 1, 1),
        "transposed groups": lambda x: transposed(x, grouped, None, 1, 0, groups=2),
    }
    check_all(functions, [normal(2, 4, *(6,) * rank)], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pooling(rank):
    """Of windows, with padding and rounding up, and to a size."""
    functions = {
        "max": lambda x: getattr(F, f"max_pool{rank}d")(x, 3, 2, 1),
        "max up": lambda x: getattr(F, f"max_pool{rank}d")(x, 2, 2, ceil_mode=True),
        "places": lambda x: getattr(F, f"max_pool{rank}d")(x, 3, 2, 1, return_indices=True),
        "mean": lambda x: getattr(F, f"avg_pool{rank}d")(x, 3, 2, 1),
        "mean inside": lambda x: getattr(F, f"avg_pool{rank}d")(x, 3, 2, 1, count_include_pad=False),
        "mean up": lambda x: getattr(F, f"avg_pool{rank}d")(x, 2, 2, ceil_mode=True),
        "to size": lambda x: getattr(F, f"adaptive_avg_pool{rank}d")(x, 3),
        "by": lambda x: (
            [
                getattr(F, f"avg_pool{rank}d")(x, 3, 2, 1, ceil_mode=up, divisor_override=5)
                for up in (False, True)
            ]
            if rank > 1
            else x
        ),
        "to size max": lambda x: getattr(F, f"adaptive_max_pool{rank}d")(x, 3, return_indices=True),
        "single": lambda x: getattr(F, f"max_pool{rank}d")(x[0], 2),
    }
    check_all(functions, [normal(2, 3, *(7,) * rank)])


def test_normalization():
    """Layers, groups, instances, batches and root mean squares."""
    scale, shift, mean, spread = normal(4), normal(4, seed=1), normal(4, seed=2), normal(4, seed=3).abs()
    functions = {
        "batch": lambda x: (F.batch_norm(x, mean, spread, scale, shift), F.batch_norm(x, mean, spread)),
        "own statistics": lambda x: F.batch_norm(x, None, None, scale, shift, training=True),
        "layer": lambda x: (
            F.layer_norm(x, (5,)),
            F.layer_norm(x, (4, 5)),
            F.layer_norm(x.mT, (4,), scale, shift),
        ),
        "group": lambda x: (F.group_norm(x, 2, scale, shift), F.group_norm(x[:, :, 0], 4)),
        "instance": lambda x: (F.instance_norm(x), F.instance_norm(x, weight=scale, bias=shift)),
        "root mean square": lambda x: (F.rms_norm(x, (5,)), F.rms_norm(x.mT, (4,), scale, 1e-3)),
        "response": lambda x: F.local_response_norm(x, 3),
        "length": lambda x: (F.normalize(x, dim=1), torch.renorm(x, 2, 0, 1.0)),
    }
    check_all(functions, [normal(3, 4, 5)], rtol=1e-4)


def test_attention():
    """Masks, causality, a scale, heads that share keys, and rows that see nothing."""
    q, k, v = normal(2, 4, 3, 8), normal(2, 4, 5, 8, seed=1), normal(2, 4, 5, 6, seed=2)
    seen = torch.ones(2, 1, 3, 5, dtype=torch.bool)
    seen[0, 0, 1] = False
    bias = normal(3, 5)
    bias[2] = -float("inf")
    attend = F.scaled_dot_product_attention
    functions = {
        "plain": attend,
        "mask": lambda q, k, v: attend(q, k, v, attn_mask=seen),
        "bias": lambda q, k, v: attend(q, k, v, attn_mask=bias),
        "causal": lambda q, k, v: attend(q, k, v, is_causal=True, scale=0.3),
        "groups": lambda q, k, v: attend(q, k[:, :2], v[:, :2], enable_gqa=True),
        "three axes": lambda q, k, v: attend(q[0], k[0], v[0]),
    }
    check_all(functions, [q, k, v])


def test_resizing():
    """By size and by scale, with and without aligned corners, antialiased, and by grids."""
    resize = F.interpolate
    functions = {
        "nearest": lambda x: (
            resize(x, scale_factor=2),
            resize(x, (7, 3)),
            resize(x, (7, 3), mode="nearest-exact"),
        ),
        "linear": lambda x: (
            resize(x, (8, 9), mode="bilinear"),
            resize(x, (8, 9), mode="bilinear", align_corners=True),
            resize(x, scale_factor=1.7, mode="bilinear"),
            resize(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
        ),
        "cubic": lambda x: (resize(x, (8, 9), mode="bicubic"), resize(x, scale_factor=0.6, mode="bicubic")),
        "antialias": lambda x: (
            resize(x, (3, 2), mode="bilinear", antialias=True),
            resize(x, (3, 2), mode="bicubic", antialias=True),
            resize(x, (3, 2), mode="bilinear", antialias=True, align_corners=True),
        ),
        "area": lambda x: resize(x, (2, 3), mode="area"),
        "line": lambda x: (resize(x[0], 9, mode="linear"), resize(x[0], scale_factor=2)),
        "volume": lambda x: (resize(x[None], (2, 8, 9), mode="trilinear"), resize(x[None], (4, 8, 9))),
        "shuffle": lambda x: (
            F.pixel_shuffle(x, 2),
            F.pixel_unshuffle(x[..., :4, :], 2),
            F.channel_shuffle(x, 2),
        ),
        "grid": lambda x: tuple(
            F.grid_sample(x, F.affine_grid(turn, (2, 4, 5, 5), corners), mode, padding, corners)
            for mode, padding, corners in (
                ("bilinear", "zeros", False),
                ("nearest", "border", True),
                ("bicubic", "reflection", False),
            )
        ),
    }
    turn = normal(2, 2, 3, seed=4)
    check_all(functions, [normal(2, 4, 6, 6)], rtol=1e-4, atol=1e-4)


def test_losses():
    """With the reductions that they have."""
    functions = {
        "differences": lambda x, y, t: (
            F.mse_loss(x, y),
            F.l1_loss(x, y),
            F.smooth_l1_loss(x, y),
            F.huber_loss(x, y),
        ),
        "entropy": lambda x, y, t: tuple(
            F.cross_entropy(x, t, reduction=how, label_smoothing=smooth)
            for how in ("mean", "none")
            for smooth in (0.0, 0.1)
        ),
        "probabilities": lambda x, y, t: F.cross_entropy(x, y.softmax(1)),
        "likelihood": lambda x, y, t: (
            F.nll_loss(x, t),
            F.nll_loss(x, t, ignore_index=1),
            F.nll_loss(x, t, x[0].abs()),
        ),
        "binary": lambda x, y, t: (
            F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
            F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=y[0].abs()),
        ),
        "divergence": lambda x, y, t: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="sum"),
        "margins": lambda x, y, t: (F.soft_margin_loss(x, y.sign()), F.margin_ranking_loss(x, y, y.sign())),
    }
    check_all(functions, [normal(3, 4), normal(3, 4, seed=1), torch.tensor([0, 3, 1])])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind):
    """Two layers in both directions, with a state that is given, and a cell."""
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(5, 6, 2, bidirectional=True).eval()
    cell = getattr(torch.nn, f"{kind}Cell")(5, 6).eval()
    state = normal(4, 2, 6, seed=1)
    given = (state, state * 2) if kind == "LSTM" else state
    check_all(
        {
            "layer": lambda x: layer(x, given),
            "cell": lambda x: cell(x[0]),
            "single": lambda x: layer(x[:, 0]),
        },
        [normal(3, 2, 5)],
    )


def test_gradients_as_operators():
    """What the graphs of training steps call."""
    ops = torch.ops.aten
    x, weight, moved = normal(2, 4, 6, 6), normal(4, 2, 3, 3, seed=1), normal(2, 4, 3, 3, seed=2)
    whole = [True, True, True]
    functions = {
        "convolution": lambda g: ops.convolution_backward(
            g, x, weight, [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 2, whole
        ),
        "max": lambda g: ops.max_pool2d_with_indices_backward(
            g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, ops.max_pool2d_with_indices(x, [2, 2])[1]
        ),
        "mean": lambda g: ops.avg_pool2d_backward(g, x, [3, 3], [2, 2], [1, 1], False, False, None),
        "adaptive": lambda g: ops._adaptive_avg_pool2d_backward(g, x),
        "embedding": lambda g: ops.embedding_dense_backward(g, (x[:, :, :3, 0] > 0).long(), 3, -1, False),
        "layer": lambda g: ops.native_layer_norm_backward(
            g,
            moved,
            [3, 3],
            *ops.native_layer_norm(moved, [3, 3], None, None, 1e-5)[1:],
            weight[0, 0],
            weight[0, 1],
            whole,
        ),
        "group": lambda g: ops.native_group_norm_backward(
            g,
            moved,
            *ops.native_group_norm(moved, None, None, 2, 4, 9, 2, 1e-5)[1:],
            weight[:, 0, 0, 0].clone(),
            2,
            4,
            9,
            2,
            whole,
        ),
    }
    check_all(functions, [normal(2, 4, 3, 3, seed=3)], rtol=1e-4, atol=1e-4)


def test_quantization():
    """Numbers rounded to a grid."""
    from torch.ao.quantization.fx import _decomposed  # noqa: F401

    ops = torch.ops.quantized_decomposed
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 3, -2])
    functions = {
        "fake": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127),
        "fake channels": lambda x: torch.fake_quantize_per_channel_affine(
            x, scales, zeros.int(), 0, -128, 127
        ),
        "there": lambda x: ops.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8),
        "and back": lambda x: ops.dequantize_per_channel(
            ops.quantize_per_channel(x, scales, zeros, 0, -128, 127, torch.int8),
            scales,
            zeros,
            0,
            -128,
            127,
            torch.int8,
        ),
    }
    check_all(functions, [normal(3, 4) * 5])
