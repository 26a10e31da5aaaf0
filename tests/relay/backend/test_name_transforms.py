"""Names for generated code."""

import pytest

from tilewright.relay.backend.name_transforms import (
    prefix_generated_name,
    prefix_name,
    sanitize_name,
    to_c_constant_style,
    to_c_function_style,
    to_c_variable_style,
)
from tilewright.relay.backend.utils import mangle_module_name
from tilewright.support.errors import TilewrightError


def test_styles() -> None:
    """Words are joined as C code has them."""
    name = prefix_generated_name(["my_model", "Run"])
    assert to_c_function_style(name) == "TVMGenMyModelRun"
    assert to_c_variable_style(name) == "tvmgen_my_model_run"
    assert to_c_constant_style(prefix_name("size")) == "TVM_SIZE"
    assert sanitize_name("input:0 ") == "input_0_" and mangle_module_name("default") == "tvmgen_default"


def test_bad_names_are_refused() -> None:
    """An empty name, one without the prefix, and one that C cannot have."""
    with pytest.raises(TilewrightError, match="Function not TVM prefixed: 'run'; use prefix_name first"):
        to_c_function_style("run")
    with pytest.raises(TilewrightError, match="Name segment is empty"):
        prefix_name(["a", ""])
    with pytest.raises(ValueError, match="letters, digits and underscores"):
        mangle_module_name("a model")
