"""The Keras applications through the doors that they come in by: Keras itself, TensorFlow, and TFLite (float and int8).

Run it:  python bench/keras_zoo.py [--doors keras,tensorflow,tflite,int8] [--only mobilenet,resnet] [--limit 300]
                                   [--again]

Weights are random, inputs small. Every model and door has a process of its own. Float outputs must agree with the
framework's to 1e-4 of the largest one, int8 outputs with TensorFlow's interpreter within one step; the table says as
well how far TensorFlow's other kernels (optimised, reference) are from those that it uses by default (XNNPACK). Results
are appended to bench/results/keras_zoo.jsonl, and what is there is not run again. Writes bench/results/keras_zoo.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
from limited import run  # noqa: E402

import tilewright as tvm  # noqa: E402
from tilewright import relay  # noqa: E402
from tilewright.contrib import graph_executor  # noqa: E402

MODELS = {
    "MobileNet": 64, "MobileNetV2": 64, "MobileNetV3Small": 64, "ResNet50": 64, "ResNet50V2": 64, "DenseNet121": 64,
    "EfficientNetB0": 64, "EfficientNetV2B0": 64, "InceptionV3": 96, "Xception": 96, "NASNetMobile": 64, "VGG16": 48,
    "ConvNeXtTiny": 64,
}  # fmt: skip
"""Applications, and the size of their images."""

Made = tuple[Any, Any, str, Any, list[Any]]
"""A module, its parameters, the name of its input, the input, and what the framework gives: of each set of kernels,
the default first."""


def made(name: str) -> tuple[Any, np.ndarray[Any, Any]]:
    """An application with random weights (those of normalisation near one), and an input."""
    import keras

    keras.utils.set_random_seed(1)
    size = MODELS[name]
    build = getattr(keras.applications, name)
    model = build(weights=None, input_shape=(size, size, 3), classes=50, classifier_activation=None)
    random = np.random.default_rng(0)
    for layer in model.layers:
        if type(layer).__name__ == "BatchNormalization":
            weights = [random.normal(0, 0.1, one.shape).astype("float32") for one in layer.get_weights()]
            # The last is the variance, which is positive; the first of four is the scale.
            for place in {len(weights) - 1, len(weights) - 4} - {-1}:
                weights[place] = np.abs(weights[place] + 1)
            layer.set_weights(weights)
    return model, random.random((1, size, size, 3)).astype("float32")


def through_keras(name: str) -> Made:
    """Layer by layer."""
    model, image = made(name)
    module, params = relay.frontend.from_keras(model, layout="NHWC")
    return module, params, model.inputs[0].name, image, [np.asarray(model(image, training=False))]


def through_tensorflow(name: str) -> Made:
    """As a concrete function."""
    import tensorflow

    model, image = made(name)
    function = tensorflow.function(lambda given: model(given, training=False))
    traced = function.get_concrete_function(tensorflow.TensorSpec(image.shape, "float32", name="image"))
    module, params = relay.frontend.from_tensorflow(traced)
    return module, params, "image", image, [np.asarray(model(image, training=False))]


def through_tflite(name: str, int8: bool = False) -> Made:
    """Converted to TFLite."""
    import tensorflow

    model, image = made(name)
    converter = tensorflow.lite.TFLiteConverter.from_keras_model(model)
    if int8:
        random = np.random.default_rng(1)
        converter.optimizations = [tensorflow.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: (
            [random.random(image.shape).astype("float32")] for _ in range(4)
        )
        converter.target_spec.supported_ops = [tensorflow.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tensorflow.int8
    content = converter.convert()
    kinds = tensorflow.lite.experimental.OpResolverType
    sets = [kinds.AUTO, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES, kinds.BUILTIN_REF] if int8 else [kinds.AUTO]
    expected = []
    for kernels in sets:
        interpreter = tensorflow.lite.Interpreter(
            model_content=content, experimental_op_resolver_type=kernels
        )
        interpreter.allocate_tensors()
        given, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
        if image.dtype != given["dtype"]:
            scale, zero = given["quantization"]
            image = np.clip(np.round(image / scale) + zero, -128, 127).astype("int8")
        interpreter.set_tensor(given["index"], image)
        interpreter.invoke()
        expected.append(interpreter.get_tensor(result["index"]))
    module, params = relay.frontend.from_tflite(content)
    return module, params, given["name"], image, expected


DOORS: dict[str, Callable[[str], Made]] = {
    "keras": through_keras,
    "tensorflow": through_tensorflow,
    "tflite": through_tflite,
    "int8": partial(through_tflite, int8=True),
}


def one(name: str, door: str) -> dict[str, Any]:
    """A model through a door: how far it is from the framework."""
    module, params, given, image, expected = DOORS[door](name)
    started = time.perf_counter()
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, target="llvm", params=params)
    model = graph_executor.GraphModule(library["default"](tvm.cpu()))
    model.run(**{given: image})
    found = model.get_output(0).numpy()
    seconds = time.perf_counter() - started
    if door == "int8":
        outputs = [each.astype(int) for each in expected]
        steps = int(np.abs(found - outputs[0]).max())
        apart = max(int(np.abs(each - outputs[0]).max()) for each in outputs)
        return {
            "agrees": steps <= 1,
            "text": f"{steps} step, {100 * (found != outputs[0]).mean():.0f} % off (TensorFlow's own: {apart}), "
            f"range {outputs[0].min()}..{outputs[0].max()}, {seconds:.0f} s",
        }
    error = float(np.abs(found - expected[0]).max() / np.abs(expected[0]).max())
    return {"agrees": error < 1e-4, "text": f"{error:.1e}, {seconds:.0f} s"}


def main() -> None:
    """Run what is asked for and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--doors", default=",".join(DOORS), help="with commas between them")
    parser.add_argument("--only", default="", help="parts of models' names, with commas between them")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one model and door")
    parser.add_argument("--memory", type=float, default=12.0, help="GB for one model and door")
    parser.add_argument("--again", action="store_true", help="run what does not agree once more")
    parser.add_argument("--records", type=Path, default=HERE / "results" / "keras_zoo.jsonl")
    parser.add_argument("--report", type=Path, default=HERE / "results" / "keras_zoo.md")
    arguments = parser.parse_args()
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    if arguments.records.exists():
        found = [json.loads(line) for line in arguments.records.read_text().splitlines()]
        lines = {(line["model"], line["door"]): line for line in found}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        _run(arguments, lines)
    finally:
        arguments.records.write_text("".join(json.dumps(line) + "\n" for line in lines.values()))
        _report(arguments.report, lines)


def _run(arguments: argparse.Namespace, lines: dict[tuple[str, str], dict[str, Any]]) -> None:
    for name in MODELS:
        if not any(part.lower() in name.lower() for part in arguments.only.split(",")):
            continue
        for door in arguments.doors.split(","):
            known = lines.get((name, door))
            if known is not None and (known["agrees"] or not arguments.again):
                continue
            found = run(partial(one, name, door), arguments.limit, int(arguments.memory * 2**30))
            text = found.get("text") or f"**{found.get('status')}** {str(found.get('note'))[:120]}"
            lines[name, door] = {
                "model": name,
                "door": door,
                "agrees": bool(found.get("agrees")),
                "text": text,
            }
            with arguments.records.open("a") as file:
                file.write(json.dumps(lines[name, door]) + "\n")
            print(name, door, text, flush=True)


def _report(path: Path, lines: dict[tuple[str, str], dict[str, Any]]) -> None:
    rows = [f"| model | {' | '.join(DOORS)} |", "|---" * (len(DOORS) + 1) + "|"]
    for name in MODELS:
        cells = [lines.get((name, door), {"text": "not run"})["text"] for door in DOORS]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    head = [
        "# Keras applications",
        "",
        f"{sum(line['agrees'] for line in lines.values())} of {len(lines)} agree: floats to 1e-4 of the largest "
        "output, int8 within one step of TensorFlow's",
        "interpreter. Each cell: the error, how far TensorFlow's other int8 kernels (optimised, reference) are from "
        "its own default",
        "ones, and the seconds of compiling and one run. `python bench/keras_zoo.py`.",
        "",
    ]
    path.write_text("\n".join([*head, *rows, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
