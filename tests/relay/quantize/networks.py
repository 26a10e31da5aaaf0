"""Networks that tests train in a few seconds, on data that is made here."""

from pathlib import Path

import numpy as np

import tilewright
from tilewright import relay

FOLDER = Path(tilewright.__file__).parent / "driver" / "cli"
DIGITS_MODEL, DIGITS = FOLDER / "digits.onnx", FOLDER / "digits.npz"


def noisy_digits(count, noise, seed=0):
    """The demo's ten digits, moved by up to a pixel, brighter or darker, and noisy: images and classes."""
    with np.load(DIGITS) as stored:
        images, classes = stored["image"], stored["label"]
    generator = np.random.default_rng(seed)
    chosen = generator.integers(0, len(images), count)
    made = images[chosen] * generator.uniform(0.7, 1.1, (count, 1, 1, 1))
    for place, (down, right) in enumerate(generator.integers(-1, 2, (count, 2))):
        made[place] = np.roll(made[place], (down, right), (1, 2))
    made = np.clip(made + noise * generator.standard_normal(made.shape), 0, 1)
    return made.astype("float32"), classes[chosen]


def trained(torch, network, data, classes, steps):
    """The network after so many steps of Adam on batches of the data."""
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    inputs, wanted = torch.from_numpy(data), torch.from_numpy(classes)
    network.train()
    for step in range(steps):
        chosen = torch.randint(0, len(inputs), (64,), generator=torch.Generator().manual_seed(step))
        loss = torch.nn.functional.cross_entropy(network(inputs[chosen]), wanted[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network.eval()


def convolutional(torch):
    """Convolutions with batch norms, one depthwise, a residual, a pool and a dense layer."""
    nn = torch.nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
            self.depthwise = nn.Sequential(
                nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), nn.BatchNorm2d(16), nn.ReLU()
            )
            self.second = nn.Sequential(nn.Conv2d(16, 16, 1, bias=False), nn.BatchNorm2d(16))
            self.last = nn.Linear(16 * 16, 10)

        def forward(self, x):
            x = self.first(x)
            x = torch.relu(self.second(self.depthwise(x)) + x)
            return self.last(torch.nn.functional.max_pool2d(x, 2).flatten(1))

    return Network()


TOKENS, WORDS = 12, 16


def sequences(count, seed=0):
    """Sequences of words; the class is the word that occurs most often."""
    generator = np.random.default_rng(seed)
    made = generator.integers(0, WORDS, (count, TOKENS))
    classes = generator.integers(0, WORDS, count)
    for row, word in zip(made, classes, strict=True):
        row[generator.choice(TOKENS, 5, replace=False)] = word
    return made, classes


def transformer(torch):
    """An embedding, two layers of attention with norms and a feed-forward network, and a classifier."""
    nn, width, heads = torch.nn, 32, 2

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.three, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

        def forward(self, x):
            batch = x.shape[0]
            parts = self.three(self.norms[0](x)).reshape(batch, TOKENS, 3, heads, width // heads)
            query, key, value = (parts.permute(2, 0, 3, 1, 4)[place] for place in range(3))
            scores = query @ key.transpose(-1, -2) / (width // heads) ** 0.5
            mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).reshape(batch, TOKENS, width)
            x = x + self.out(mixed)
            return x + self.narrow(torch.relu(self.wide(self.norms[1](x))))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, width), nn.Parameter(torch.zeros(TOKENS, width))
            self.blocks = nn.Sequential(Block(), Block())
            self.last = nn.Linear(width, WORDS)

        def forward(self, tokens):
            return self.last(self.blocks(self.words(tokens) + self.places).mean(1))

    return Network()


def imported(torch, network, example, name):
    """The network as a program and its parameters."""
    traced = torch.jit.trace(network, torch.from_numpy(example))
    return relay.frontend.from_pytorch(traced, [(name, (example.shape, str(example.dtype)))])
