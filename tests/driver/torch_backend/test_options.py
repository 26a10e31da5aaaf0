"""Options and modes of torch.compile(backend="tilewright")."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tilewright.driver.torch_backend import BackendOptions, tilewright  # noqa: E402
from tilewright.support.errors import TilewrightError  # noqa: E402
from tilewright.target import Target  # noqa: E402


@pytest.mark.parametrize(("given", "message"), [
    ({"traget": "llvm"}, r"no option 'traget' \(did you mean 'target'\?\): the options are target, opt_level"),
    ({"mixed_precision": "bfloat"}, r"float16, bfloat16 or None, not 'bfloat' \(did you mean 'bfloat16'\?\)"),
    ({"opt_level": "3"}, "opt_level is a number from 0 to 4, not '3'"),
    ({"opt_level": 7}, "opt_level is a number from 0 to 4, not 7"),
    ({"freeze": "no"}, "freeze is True or False"),
    ({"config": 3}, "config is a dictionary, not a int"),
    ({"target": "lvlm"}, "lvlm"),
])  # fmt: skip
def test_wrong_options_are_errors_that_say_what_to_write(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        BackendOptions.read(given, None)


def test_modes() -> None:
    for mode in ("default", "reduce-overhead", "max-autotune"):
        assert BackendOptions.read(None, mode) == BackendOptions()
    with pytest.raises(TilewrightError, match=r"no mode 'max-autotun' \(did you mean 'max-autotune'\?\)"):
        BackendOptions.read(None, "max-autotun")


@torch.no_grad()
def test_options_reach_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.driver.torch_backend import static

    seen: list[Any] = []
    original = static.relay.build

    def build(module: Any, target: Any) -> Any:
        context = static.pass_context.__globals__["PassContext"].current()
        seen.append((target, context.opt_level, dict(context.config)))
        return original(module, target=target)

    monkeypatch.setattr(static.relay, "build", build)
    options = {"target": "llvm -mcpu=generic", "opt_level": 1, "config": {"relay.FuseOps.max_depth": 1}}
    call = torch.compile(lambda x: x + 1, backend=tilewright, options=options)
    assert call(torch.ones(2)).tolist() == [2, 2]
    assert seen == [(Target("llvm -mcpu=generic"), 1, {"relay.FuseOps.max_depth": 1})]
