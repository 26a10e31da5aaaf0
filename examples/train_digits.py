"""Train the network that ``tilewright demo`` compiles, and write it as ONNX with a few digits to run it on.

    pip install scikit-learn torch && python examples/train_digits.py [FOLDER]

The data are the 8x8 digits that scikit-learn carries. Training takes a minute or two on two idle cores. Without a
folder, the files of the package are written anew: ``digits.onnx`` and ``digits.npz`` (ten images that the network has
not seen while it was trained, one of each digit, and their labels).
"""

import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tilewright" / "driver" / "cli"
EPOCHS = 40
BATCH = 64


def network():
    """Three convolutions and a classifier: 40,506 parameters."""

    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *block(1, 16),
        *block(16, 32),
        nn.MaxPool2d(2),
        *block(32, 64),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(64 * 2 * 2, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
        nn.Softmax(dim=1),
    )


def data():
    """Images in [0, 1] of shape (n, 1, 8, 8) and labels, shuffled: for training, and held back."""
    found = load_digits()
    images = (found.images / 16.0).astype("float32")[:, None]
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], found.target[order]
    return (images[:1400], labels[:1400]), (images[1400:], labels[1400:])


def train(model, images, labels):
    """Adam on the negative log likelihood, with images moved by up to one pixel."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    model.train()
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(images), generator=generator).split(BATCH):
            moves = torch.randint(-1, 2, (2,), generator=generator).tolist()
            batch = torch.roll(images[chosen], moves, dims=(2, 3))
            loss = nn.functional.nll_loss(torch.log(model(batch) + 1e-9), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()


def one_of_each(images, labels):
    """The first image of each digit."""
    chosen = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
    return images[chosen], labels[chosen]


def main(folder=PACKAGE):
    """Train, say how well it does on what was held back, write the files."""
    torch.manual_seed(0)
    (images, labels), (held_images, held_labels) = data()
    model = network()
    train(model, torch.from_numpy(images), torch.from_numpy(labels))
    model.eval()
    with torch.no_grad():
        guesses = model(torch.from_numpy(held_images)).argmax(dim=1).numpy()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters:,} parameters, {np.mean(guesses == held_labels):.1%} of {len(guesses)} images right")
    folder.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        model,
        (torch.zeros(1, 1, 8, 8),),
        str(folder / "digits.onnx"),
        input_names=["image"],
        output_names=["probabilities"],
        opset_version=17,
        dynamo=False,
    )
    shown, shown_labels = one_of_each(held_images, held_labels)
    np.savez_compressed(folder / "digits.npz", image=shown, label=shown_labels)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
