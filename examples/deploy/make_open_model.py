"""A model of open sizes, compiled for deployment: any number of sentences of any length, run by the virtual machine.

Run it:  python examples/deploy/make_open_model.py FOLDER

Words have vectors; a sentence is the mean of those of its words, each weighted by a softmax; a layer and a softmax make
it the probabilities of five classes. It writes what the programs ``open_sizes`` of this folder need:

- ``open.so``: kernels, program and weights, self-contained
- ``tokens_2x5.bin`` (int64) and ``expected_2x5.bin`` (float32): two sentences of five words, and the probabilities that
  NumPy gives for them in float64; and the same for other sizes
- ``tilewright.h``, ``tilewright.hpp`` and ``libtilewright_runtime.so``: the runtime's headers and library
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.support.cbuild import copy_runtime

WORDS, WIDTH, CLASSES = 50, 16, 5
SIZES = ((2, 5), (1, 9), (3, 1))
"""Sentences, and words of each."""


def parameters() -> dict[str, np.ndarray]:
    """The weights, which are random but always the same."""
    generator = np.random.default_rng(11)
    shapes = {"words": (WORDS, WIDTH), "importance": (WIDTH,), "layer": (CLASSES, WIDTH)}
    return {name: generator.standard_normal(shape).astype("float32") for name, shape in shapes.items()}


def module() -> tvm.IRModule:
    """The model. Both sizes of its input are open."""
    tokens = relay.var("tokens", shape=(relay.Any(), relay.Any()), dtype="int64")
    words = relay.var("words", shape=(WORDS, WIDTH))
    importance = relay.var("importance", shape=(WIDTH,))
    layer = relay.var("layer", shape=(CLASSES, WIDTH))
    vectors = relay.take(words, tokens, axis=0)
    weights = relay.nn.softmax(relay.sum(vectors * importance, axis=2), axis=1)
    sentence = relay.sum(vectors * relay.expand_dims(weights, axis=2), axis=1)
    probabilities = relay.nn.softmax(relay.nn.dense(sentence, layer))
    names = {"output_tensor_names": ["probabilities", "weights"]}
    body = relay.Tuple([probabilities, weights])
    return tvm.IRModule.from_expr(relay.Function([tokens, words, importance, layer], body, attrs=names))


def softmax(scores: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


def test_vectors(sentences: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens, and what the model gives for them in exact enough arithmetic."""
    tokens = np.random.default_rng(sentences * 100 + length).integers(0, WORDS, (sentences, length))
    values = {name: value.astype("float64") for name, value in parameters().items()}
    vectors = values["words"][tokens]
    weights = softmax(vectors @ values["importance"])
    sentence = (vectors * weights[:, :, None]).sum(1)
    return tokens.astype("int64"), softmax(sentence @ values["layer"].T).astype("float32")


def main() -> None:
    """Writes the model's files into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    relay.vm.compile(module(), "llvm", params=parameters()).export_library(str(folder / "open.so"))
    for sentences, length in SIZES:
        tokens, expected = test_vectors(sentences, length)
        (folder / f"tokens_{sentences}x{length}.bin").write_bytes(tokens.tobytes())
        (folder / f"expected_{sentences}x{length}.bin").write_bytes(expected.tobytes())
    copy_runtime(folder)
    print(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir() if path.is_file()))}")


if __name__ == "__main__":
    main()
