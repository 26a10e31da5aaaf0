"""Functions that choose their implementation by the current target."""

import pytest

from tilewright.support.errors import TargetError
from tilewright.target import (
    GenericFunc,
    Target,
    generic_func,
    get_native_generic_func,
    override_native_generic_func,
)


def make_example():
    """A generic function with a default and two specialisations."""

    @generic_func
    def operation(data):
        """Documented."""
        return data + 1

    @operation.register(["cuda", "gpu"])
    def on_gpu(data):
        return data + 2

    @operation.register("arm_cpu")
    def on_arm(data):
        return data + 3

    return operation, on_gpu, on_arm


def test_dispatch_by_the_first_key_that_has_one():
    """The most specific key wins, other targets and no target get the default."""
    operation, _, _ = make_example()
    assert operation(1) == 2
    with Target("cuda"):
        assert operation(1) == 3
    with Target("rocm"):
        assert operation(1) == 3
    with Target("llvm -device=arm_cpu"):
        assert operation(1) == 4
    with Target("llvm"):
        assert operation(data=1) == 2


def test_decorated_function_keeps_name_and_default():
    """What the decorator gives looks like the default; ``register`` gives the function back."""
    operation, on_gpu, _ = make_example()
    assert operation.__name__ == "operation"
    assert operation.__doc__ == "Documented."
    assert operation.fdefault(5) == 6
    assert on_gpu(1) == 3
    assert set(operation.dispatch_dict) == {"cuda", "gpu", "arm_cpu"}


def test_key_is_registered_once_unless_overridden():
    """A second implementation for a key is refused, and none of its keys is changed."""
    operation, _, _ = make_example()
    with pytest.raises(TargetError, match="already has an implementation for gpu"):
        operation.register(["metal", "gpu"], lambda data: 0)
    assert "metal" not in operation.dispatch_dict
    operation.register("gpu", lambda data: 0, override=True)
    with Target("metal"):
        assert operation(1) == 0


def test_the_function_behind_the_decorators_dispatches_too():
    """``get_packed_func`` gives what programs pass on as one function."""
    operation, _, _ = make_example()
    behind = operation.get_packed_func()
    assert behind(1) == 2
    with Target("cuda"):
        assert behind(1) == 3


def test_named_function_is_shared():
    """A named generic function is one object; overriding it gives it another default."""
    named = get_native_generic_func("test_named_function_is_shared")
    assert isinstance(named, GenericFunc)
    with pytest.raises(TargetError, match="has no default"):
        named()

    @override_native_generic_func("test_named_function_is_shared")
    def implementation():
        return "first"

    @implementation.register("cpu")
    def on_cpu():
        return "cpu"

    assert named() == implementation() == "first"
    with Target("llvm"):
        assert named() == implementation() == "cpu"
    assert named.get_function(Target("llvm")) is on_cpu
    with pytest.raises(TargetError, match="already has a default"):
        named.set_default(implementation)
