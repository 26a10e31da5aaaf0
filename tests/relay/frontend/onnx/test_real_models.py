"""Models that people use, from the packages that carry them, and exports of torch: the numbers of ONNX Runtime."""

from __future__ import annotations

import importlib.util
import io
import logging
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import assert_close, run

from tilewright import relay
from tilewright.ir.transform import PassContext
from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.interpreter import Interpreter


def file_of(package: str, path: str) -> Path:
    """A file of an installed package; the test is skipped where it is not installed."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(found.origin).parent / path


def compiled(path: Path, inputs: Mapping[str, Any], values: Sequence[str] = ()) -> Any:
    """The model compiled for inputs of these shapes and, where named, these values: a function of the other inputs."""
    shapes = {name: np.shape(value) for name, value in inputs.items()}
    fixed = {name: inputs[name] for name in values}
    module, params = from_onnx(path, shapes, convert_config={"values": fixed})
    names = [one.name_hint for one in module["main"].params if one.name_hint not in params]
    with PassContext(opt_level=3):
        program = relay.create_executor("graph", module, params=params).evaluate()

    def call(given: Mapping[str, Any]) -> list[Any]:
        made = program(*[given[name] for name in names])
        return [one.numpy() for one in ([made] if hasattr(made, "numpy") else made)]

    return call


def close(found: Sequence[Any], expected: Sequence[Any]) -> None:
    """The tolerance for models of float32."""
    assert_close(found, expected, rtol=1e-3, atol=1e-4)


# Speech


def speech(length: int) -> Any:
    """A voice of sorts: a gliding tone with overtones that comes and goes, over a little noise."""
    time = np.arange(length) / 16000
    tone = sum(np.sin(2 * np.pi * (120 + 40 * np.sin(3 * time)) * part * time) / part for part in range(1, 6))
    noise = np.random.default_rng(0).standard_normal(length)
    return (0.2 * tone * (np.sin(7 * time) > 0) + 0.003 * noise).astype("float32")


STATE = np.zeros((2, 1, 128), "float32")
RATE = {"sr": np.array(16000, "int64")}
SILERO: list[tuple[str, dict[str, Any], list[str]]] = [
    ("silero_vad.onnx", RATE, ["sr"]),
    ("silero_vad_16k_op15.onnx", RATE, []),
    ("silero_vad_half.onnx", {}, []),
    ("silero_vad_op18_ifless.onnx", RATE, ["sr"]),
    ("silero_vad_openvino_16k.onnx", {}, []),
]


@pytest.mark.parametrize(("name", "others", "values"), SILERO, ids=[case[0] for case in SILERO])
def test_silero(name: str, others: dict[str, Any], values: list[str]) -> None:
    """The detector of voices over several pieces of a signal, each with the state that the one before left."""
    path = file_of("silero_vad", f"data/{name}")
    signal = speech(64 + 4 * 512)
    pieces = [signal[None, 512 * part : 512 * part + 576] for part in range(4)]
    program = compiled(path, {"input": pieces[0], "state": STATE, **others}, values)
    state = STATE
    for piece in pieces:
        given = {"input": piece, "state": state, **others}
        expected = reference_runtime.outputs(path, given)
        close(program(given), expected)
        state = expected[1]


def test_silero_at_another_rate() -> None:
    """The other branch of the model, and its own recurrent network."""
    path = file_of("silero_vad", "data/silero_vad.onnx")
    given = {"input": speech(288)[None], "state": STATE, "sr": np.array(8000, "int64")}
    close(run(onnx.load(str(path)), given), reference_runtime.outputs(path, given))


def test_silero_of_a_sequence() -> None:
    """The variant that takes a whole sequence, of a length that the model leaves open."""
    path = file_of("silero_vad", "data/silero_vad_16k_sequence.onnx")
    model = onnx.load(str(path))
    empty = np.zeros((1, 1, 128), "float32")
    for count in (1, 3):
        pieces = np.stack([speech(2000)[512 * part : 512 * part + 576] for part in range(count)])
        given = {"input": pieces, "h": empty, "c": empty}
        close(run(model, given), reference_runtime.outputs(path, given))


# Kinds of files


def tokens(content: bytes) -> list[int]:
    """What magika reads of a file: its first and its last kilobyte, padded."""
    stripped = content.strip()
    first, last = list(stripped[:1024]), list(stripped[-1024:])
    return first + [256] * (1024 - len(first)) + [256] * (1024 - len(last)) + last


def test_magika() -> None:
    """Python, an executable, JSON and HTML are told apart as ONNX Runtime tells them apart."""
    path = file_of("magika", "models/standard_v3_3/model.onnx")
    files = [
        Path(__file__).read_bytes(),
        Path(sys.executable).read_bytes()[:4096],
        b'{"a": [1, 2, 3], "b": {"c": null}}' * 20,
        b"<!DOCTYPE html><html><head><title>t</title></head><body><p class='a'>text</p></body></html>" * 30,
    ]
    given = {"bytes": np.array([tokens(each) for each in files], "int32")}
    expected = reference_runtime.outputs(path, given)
    close(compiled(path, given)(given), expected)
    assert len(set(expected[0].argmax(axis=1))) == 4


# Characters


def picture(height: int, width: int) -> Any:
    """Black strokes on white, somewhat like writing, as the models take it."""
    image = np.ones((height, width), "float32")
    generator = np.random.default_rng(height * width)
    for left in range(6, width - 12, 14):
        top = height // 4 + int(generator.integers(0, 3))
        image[top : top + height // 2, left : left + 2] = 0
        if generator.random() < 0.6:
            image[top + height // 4 : top + height // 4 + 2, left : left + 9] = 0
        if generator.random() < 0.6:
            image[top : top + height // 2, left + 8 : left + 10] = 0
    return np.repeat(((image - 0.5) / 0.5)[None, None], 3, axis=1)


RAPIDOCR: list[tuple[str, str, list[tuple[int, int]]]] = [
    ("detector", "ch_PP-OCRv4_det_infer.onnx", [(64, 96), (96, 160)]),
    ("classifier", "ch_ppocr_mobile_v2.0_cls_infer.onnx", [(48, 192), (48, 64)]),
    ("recogniser", "ch_PP-OCRv4_rec_infer.onnx", [(48, 96), (48, 160)]),
]


@pytest.mark.parametrize(
    ("name", "sizes"), [case[1:] for case in RAPIDOCR], ids=[case[0] for case in RAPIDOCR]
)
def test_rapidocr_at_any_size(name: str, sizes: list[tuple[int, int]]) -> None:
    """One module, whose sizes are open, gives the right numbers at several."""
    path = file_of("rapidocr_onnxruntime", f"models/{name}")
    module, params = from_onnx(path)
    weights = [params[one.name_hint].numpy() for one in module["main"].params[1:]]
    for size in sizes:
        image = picture(*size)
        found = Interpreter(module).run(module["main"], [image, *weights])
        close([found], reference_runtime.outputs(path, {"x": image}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"), [(name, sizes[-1]) for _, name, sizes in RAPIDOCR], ids=[case[0] for case in RAPIDOCR]
)
def test_rapidocr_compiled(name: str, size: tuple[int, int]) -> None:
    """Compiled for one size."""
    path = file_of("rapidocr_onnxruntime", f"models/{name}")
    given = {"x": picture(*size)}
    close(compiled(path, given)(given), reference_runtime.outputs(path, given))


# Exports of torch


def torch_cases() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Networks of torch, and inputs for them."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    nn = torch.nn

    class Recurrent(nn.Module):  # type: ignore[name-defined,misc]
        """An LSTM in both directions and a projection of its last step."""

        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
            self.head = nn.Linear(16, 3)

        def forward(self, data: Any) -> Any:
            made, _ = self.lstm(data)
            return self.head(made[:, -1])

    return {
        "mlp": (
            nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1)),
            (torch.randn(3, 10),),
        ),
        "cnn": (
            nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1),
                nn.BatchNorm2d(8),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(8, 8, 3, groups=8),
                nn.Hardswish(),
                nn.Upsample(scale_factor=2, mode="bilinear"),
                nn.ConvTranspose2d(8, 4, 2, stride=2),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Linear(4, 5),
            ),
            (torch.randn(2, 3, 16, 16),),
        ),
        "lstm": (Recurrent(), (torch.randn(2, 5, 6),)),
        "transformer": (
            nn.TransformerEncoder(
                nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0),
                2,
                enable_nested_tensor=False,
            ),
            (torch.randn(2, 7, 16),),
        ),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exporter", ["traced", "exported"])
@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm", "transformer"])
def test_exports_of_torch(name: str, exporter: str, request: pytest.FixtureRequest) -> None:
    """What torch computes is what its export computes here, by either of torch's exporters."""
    torch = pytest.importorskip("torch")
    if exporter == "exported":
        pytest.importorskip("onnxscript")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    network, inputs = torch_cases()[name]
    network.eval()
    # The fused encoder layer of torch has no export.
    fast_path = torch.backends.mha
    request.addfinalizer(partial(fast_path.set_fastpath_enabled, fast_path.get_fastpath_enabled()))
    fast_path.set_fastpath_enabled(False)
    content = io.BytesIO()
    with torch.no_grad():
        expected = network(*inputs).numpy()
        torch.onnx.export(
            network, inputs, content, dynamo=exporter == "exported", input_names=["x"], verbose=False
        )
    model = onnx.load_from_string(content.getvalue())
    given = {model.graph.input[0].name: inputs[0].numpy()}
    close(run(model, given, executor="graph" if name != "lstm" else "debug"), [expected])
