"""One kernel's functions in the PTX of a whole model."""

from tilewright.driver.profile.device_code import ptx_of

TEXT = """.version 8.7
.visible .entry model_dense_kernel0(
	.param .u64 p0
)
{
	{ // inline
	}
	ret;
}
.visible .entry model_dense_1_kernel0(
)
{
	ret;
}
.visible .entry model_dense_kernel1(
)
{
	bar.sync 0;
}
"""


def test_functions_of_a_kernel() -> None:
    """All that it launches, and not those of a kernel whose name begins with its name."""
    found = ptx_of(TEXT, "model_dense")
    assert found.count(".entry") == 2 and "bar.sync" in found and "// inline" in found
    assert ptx_of(TEXT, "model_dense_1").count(".entry") == 1
    assert ptx_of(TEXT, "model") == ""
