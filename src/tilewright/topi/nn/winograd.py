"""Winograd convolutions of stride one: fewer multiplications, in tiles.

Both layouts are one computation over (tile row, tile column, channel, tile) tensors: inputs are transformed tile by
tile, multiplied as one matrix product for each of the tile's positions, and transformed back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import te
from tilewright.support.dtype import DataType
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.convolution import require_equal, require_rank
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.utils import as_type, in_rewritten_layout, pad_amounts, per_axis, sum_types
from tilewright.topi.nn.winograd_util import winograd_transform_matrices
from tilewright.topi.utils import get_const_int, get_const_tuple, simplify


def _square_kernel(extents: Any) -> int:
    sizes = get_const_tuple(extents)
    if len(set(sizes)) != 1:
        raise OpAttributeInvalid(f"Winograd filtering needs a kernel of equal extents, not {sizes}")
    return get_const_int(sizes[0])


def _transform_plane(kernel_at: Any, shape: Any, tile_size: int, size: int, dtype: str) -> Tensor:
    """``G g G^T`` for each of the kernels; the result is (n, n, *shape)."""
    _, _, matrix = winograd_transform_matrices(tile_size, size, dtype)
    alpha = tile_size + size - 1
    ry = te.reduce_axis((0, size), name="r_kh")
    rx = te.reduce_axis((0, size), name="r_kw")

    def element(eps: Any, nu: Any, *rest: Any) -> Any:
        return te.sum(kernel_at(rest, ry, rx) * matrix(eps, ry) * matrix(nu, rx), axis=[ry, rx])

    made: Tensor = te.compute((alpha, alpha, *shape), element, name="transform_weight")
    return made


def conv2d_winograd_weight_transform(kernel: Tensor, tile_size: int) -> Tensor:
    """A kernel (output, input, height, width) as (n, n, output, input) for tiles of ``tile_size``."""
    size = _square_kernel(kernel.shape[2:])
    return _transform_plane(
        lambda rest, ry, rx: kernel(*rest, ry, rx), kernel.shape[:2], tile_size, size, kernel.dtype
    )


def conv3d_winograd_weight_transform(kernel: Tensor, tile_size: int) -> Tensor:
    """A kernel (output, input, depth, height, width) for tiles of ``tile_size``.

    A cube of three to seven taps is transformed along all axes, to (n, n, n, output, input); any other along height
    and width, to (n, n, depth, output, input).
    """
    depth, height, width = get_const_tuple(kernel.shape[2:])
    size = _square_kernel((height, width))
    outputs, inputs = kernel.shape[:2]
    if not (2 < depth < 8 and depth == size):
        return _transform_plane(
            lambda rest, ry, rx: kernel(rest[1], rest[2], rest[0], ry, rx),
            (depth, outputs, inputs),
            tile_size,
            size,
            kernel.dtype,
        )
    _, _, matrix = winograd_transform_matrices(tile_size, size, kernel.dtype)
    alpha = tile_size + size - 1
    rz, ry, rx = (te.reduce_axis((0, size), name=name) for name in ("r_kd", "r_kh", "r_kw"))

    def element(omega: Any, eps: Any, nu: Any, o: Any, i: Any) -> Any:
        weights = matrix(omega, rz) * matrix(eps, ry) * matrix(nu, rx)
        return te.sum(kernel(o, i, rz, ry, rx) * weights, axis=[rz, ry, rx])

    made: Tensor = te.compute((alpha, alpha, alpha, outputs, inputs), element, name="transform_weight")
    return made


@dataclass(frozen=True)
class _Tiles:
    """The sizes of a convolution in tiles."""

    padded: Tensor
    layout: str
    tile: int
    kernel: int
    height: Any
    width: Any
    inner: DataType

    @property
    def alpha(self) -> int:
        """How many inputs a tile reads along an axis."""
        return self.tile + self.kernel - 1

    @property
    def rows(self) -> Any:
        """How many tiles a column of them has."""
        return simplify((self.height + self.tile - 1) // self.tile)

    @property
    def columns(self) -> Any:
        """How many tiles a row of them has."""
        return simplify((self.width + self.tile - 1) // self.tile)

    def read(self, n: Any, c: Any, h: Any, w: Any) -> Any:
        """An element of the padded input, in the type of the sums."""
        at = {"N": n, "C": c, "H": h, "W": w}
        return self.padded(*[at[letter] for letter in self.layout]).astype(self.inner)


def _tiles(
    data: Tensor,
    layout: str,
    kernel: int,
    tile: int,
    strides: Any,
    padding: Any,
    dilation: Any,
    inner: DataType,
) -> _Tiles:
    for value, what in ((strides, "strides"), (dilation, "dilation")):
        if per_axis(value, 2, what) != (1, 1):
            raise OpAttributeInvalid(f"Winograd filtering needs {what} of 1, not {value}")
    (top, left), (down, right) = pad_amounts(padding, (kernel, kernel))
    axes = [layout.index("H"), layout.index("W")]
    height = simplify(data.shape[axes[0]] + top + down - kernel + 1)
    width = simplify(data.shape[axes[1]] + left + right - kernel + 1)
    # The last tiles may reach beyond the image: what they read there is zero, and what they give is not used.
    beyond = [simplify((-(-extent // tile)) * tile - extent) for extent in (height, width)]
    padded = pad_spatial(
        data, axes, [top, left], get_const_tuple([down + beyond[0], right + beyond[1]]), name="data_pad"
    )
    return _Tiles(padded, layout, tile, kernel, height, width, inner)


def _winograd(tiles: _Tiles, weight: Tensor, name: str, attrs: dict[str, Any]) -> Tensor:
    """The convolution of tiled inputs with a transformed kernel (n, n, output, input)."""
    alpha, tile, layout = tiles.alpha, tiles.tile, tiles.layout
    batch = tiles.padded.shape[layout.index("N")]
    channels, outputs = tiles.padded.shape[layout.index("C")], weight.shape[2]
    rows, columns = tiles.rows, tiles.columns
    count = simplify(batch * rows * columns)
    a, b, _ = winograd_transform_matrices(tile, tiles.kernel, tiles.inner)

    def gather(eps: Any, nu: Any, p: Any, c: Any) -> Any:
        n, row, column = p // (rows * columns), (p // columns) % rows, p % columns
        return tiles.read(n, c, row * tile + eps, column * tile + nu)

    gathered = te.compute((alpha, alpha, count, channels), gather, name="input_tile", tag=tag.INJECTIVE)
    ra, rb = te.reduce_axis((0, alpha), name="r_a"), te.reduce_axis((0, alpha), name="r_b")
    packed = te.compute(
        (alpha, alpha, count, channels),
        lambda eps, nu, p, c: te.sum(gathered(ra, rb, p, c) * b(ra, eps) * b(rb, nu), axis=[ra, rb]),
        name="data_pack",
    )
    channel = te.reduce_axis((0, channels), name="ci")
    product = te.compute(
        (alpha, alpha, count, outputs),
        lambda eps, nu, p, o: te.sum(
            packed(eps, nu, p, channel) * weight(eps, nu, o, channel).astype(tiles.inner), axis=channel
        ),
        name="bgemm",
        attrs=attrs,
    )
    ra, rb = te.reduce_axis((0, alpha), name="r_a"), te.reduce_axis((0, alpha), name="r_b")
    back = te.compute(
        (tile, tile, count, outputs),
        lambda vh, vw, p, o: te.sum(product(ra, rb, p, o) * a(ra, vh) * a(rb, vw), axis=[ra, rb]),
        name="inverse",
    )

    def element(*indices: Any) -> Any:
        at = dict(zip(layout, indices, strict=True))
        p = (at["N"] * rows + at["H"] // tile) * columns + at["W"] // tile
        return back(at["H"] % tile, at["W"] % tile, p, at["C"])

    extents = {"N": batch, "C": outputs, "H": tiles.height, "W": tiles.width}
    made: Tensor = te.compute([extents[letter] for letter in layout], element, name=name, tag=name)
    return made


def _run(
    data: Tensor,
    weight: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None,
    pre_computed: bool,
    layout: str,
    kernel_layout: str,
    tile_size: int,
    kernel_size: int,
) -> Tensor:
    require_rank(data, layout, "the input")
    require_rank(weight, "nnOI" if pre_computed else kernel_layout, "the kernel")
    inner, result = sum_types(data.dtype, out_dtype)
    if pre_computed:
        tile_size = get_const_int(weight.shape[0]) - kernel_size + 1
        packed, attrs = weight, {"layout_free_placeholders": [weight]}
    else:
        at = {letter: position for position, letter in enumerate(kernel_layout)}
        kernel_size = _square_kernel((weight.shape[at["H"]], weight.shape[at["W"]]))

        def read(rest: Any, ry: Any, rx: Any) -> Any:
            found = {"O": rest[0], "I": rest[1], "H": ry, "W": rx}
            return weight(*[found[letter] for letter in kernel_layout]).astype(inner)

        shape = (weight.shape[at["O"]], weight.shape[at["I"]])
        packed, attrs = _transform_plane(read, shape, tile_size, kernel_size, inner), {}
    require_equal(data.shape[layout.index("C")], packed.shape[3], "channels of the input and of the kernel")
    tiles = _tiles(data, layout, kernel_size, tile_size, strides, padding, dilation, inner)
    return as_type(_winograd(tiles, packed, f"conv2d_winograd_{layout.lower()}", attrs), result)


def conv2d_winograd_nhwc(
    data: Tensor,
    weight: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None,
    pre_computed: bool = False,
    auto_scheduler_rewritten_layout: str = "",
    tile_size: int = 4,
    kernel_size: int = 3,
) -> Tensor:
    """The convolution of NHWC with a kernel HWIO, or with a transformed one (n, n, output, input) if ``pre_computed``.

    A transformed kernel had ``kernel_size`` taps; its ``n`` then tells the size of the tiles.
    """
    if auto_scheduler_rewritten_layout:
        return in_rewritten_layout(
            weight,
            auto_scheduler_rewritten_layout,
            ["eps", "nu", "co", "ci"] if pre_computed else ["ry", "rx", "rc", "ff"],
            lambda original: conv2d_winograd_nhwc(
                data,
                original,
                strides,
                padding,
                dilation,
                out_dtype,
                pre_computed,
                tile_size=tile_size,
                kernel_size=kernel_size,
            ),
        )
    return _run(
        data,
        weight,
        strides,
        padding,
        dilation,
        out_dtype,
        pre_computed,
        "NHWC",
        "HWIO",
        tile_size,
        kernel_size,
    )


def conv2d_winograd_nhwc_without_weight_transform(
    data: Tensor,
    weight: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None,
    auto_scheduler_rewritten_layout: str = "",
    kernel_size: int = 3,
) -> Tensor:
    """The convolution of NHWC with a transformed kernel (n, n, output, input)."""
    return conv2d_winograd_nhwc(
        data,
        weight,
        strides,
        padding,
        dilation,
        out_dtype,
        True,
        auto_scheduler_rewritten_layout,
        kernel_size=kernel_size,
    )


def conv2d_winograd_nchw(
    data: Tensor,
    weight: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None,
    pre_computed: bool = False,
    auto_scheduler_rewritten_layout: str = "",
    tile_size: int = 4,
    kernel_size: int = 3,
) -> Tensor:
    """The convolution of NCHW with a kernel OIHW, or with a transformed one (n, n, output, input) if ``pre_computed``.

    A transformed kernel had ``kernel_size`` taps; its ``n`` then tells the size of the tiles.
    """
    if auto_scheduler_rewritten_layout:
        return in_rewritten_layout(
            weight,
            auto_scheduler_rewritten_layout,
            ["eps", "nu", "co", "ci"] if pre_computed else ["ff", "rc", "ry", "rx"],
            lambda original: conv2d_winograd_nchw(
                data,
                original,
                strides,
                padding,
                dilation,
                out_dtype,
                pre_computed,
                tile_size=tile_size,
                kernel_size=kernel_size,
            ),
        )
    return _run(
        data,
        weight,
        strides,
        padding,
        dilation,
        out_dtype,
        pre_computed,
        "NCHW",
        "OIHW",
        tile_size,
        kernel_size,
    )


def conv2d_winograd_nchw_without_weight_transform(
    data: Tensor,
    weight: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None,
    auto_scheduler_rewritten_layout: str = "",
    kernel_size: int = 3,
) -> Tensor:
    """The convolution of NCHW with a transformed kernel (n, n, output, input)."""
    return conv2d_winograd_nchw(
        data,
        weight,
        strides,
        padding,
        dilation,
        out_dtype,
        True,
        auto_scheduler_rewritten_layout,
        kernel_size=kernel_size,
    )
