"""Models and trainings for a GPU: transformers, networks of torchvision, a recurrent network, and a small one."""

from collections.abc import Callable

import torch
from attention import Attention
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"
VOCABULARY, CLASSES = 32_000, 1000


class Causal(Attention):
    """Attention that looks back only, by single operators or fused."""

    def mixed(self, query, key, value):
        if self.fused:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True)
        later = torch.ones(*[query.shape[-2]] * 2, dtype=torch.bool, device=query.device).triu(1)
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        return torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ value


class Layer(nn.Module):
    """A layer of a language model."""

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.attention, self.before, self.after = Causal(width, heads, fused), nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, hidden):
        hidden = hidden + self.attention(self.before(hidden))
        return hidden + self.mlp(self.after(hidden))


class Gpt(nn.Module):
    """A language model. With `checkpointed`, layers are computed again in the backward pass."""

    def __init__(self, width=768, heads=12, layers=12, tokens=512, fused=True, checkpointed=False) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(tokens, width)
        self.layers = nn.ModuleList(Layer(width, heads, fused) for _ in range(layers))
        self.head, self.checkpointed = nn.Linear(width, VOCABULARY, bias=False), checkpointed

    def forward(self, words):
        hidden = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        for layer in self.layers:
            hidden = checkpoint(layer, hidden, use_reentrant=False) if self.checkpointed else layer(hidden)
        return self.head(hidden)


class Lstm(nn.Module):
    """A recurrent language model."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(VOCABULARY, 1024), nn.Linear(1024, VOCABULARY)
        self.layers = nn.LSTM(1024, 1024, 3, batch_first=True)

    def forward(self, words):
        return self.head(self.layers(self.words(words))[0])


class Encoder(nn.Module):
    """Torch's own encoder layers, and one class for each sample."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.head = nn.Linear(1024, CLASSES)

    def forward(self, hidden):
        return self.head(self.layers(hidden).mean(1))


def perceptron() -> nn.Module:
    """Returns many small layers."""
    layers = [each for _ in range(12) for each in (nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512))]
    return nn.Sequential(*layers, nn.Linear(512, CLASSES))


OPTIMIZERS: dict[str, Callable] = {
    "AdamW": torch.optim.AdamW,
    "AdamW in a loop": lambda parameters: torch.optim.AdamW(parameters, foreach=False),
    "fused AdamW": lambda parameters: torch.optim.AdamW(parameters, fused=True),
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=1e-3),
    "SGD, momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
}


def words(samples: int, tokens: int = 512):
    """Returns a batch of words and the next ones."""
    return tuple(torch.randint(0, VOCABULARY, (samples, tokens), device=DEVICE) for _ in range(2))


def images(samples: int):
    """Returns a batch of images and their classes."""
    return torch.randn(samples, 3, 224, 224, device=DEVICE), torch.randint(0, CLASSES, (samples,), device=DEVICE)


def vectors(samples: int, *shape: int):
    """Returns a batch of numbers and their classes."""
    return torch.randn(samples, *shape, device=DEVICE), torch.randint(0, CLASSES, (samples,), device=DEVICE)


class Training:
    """One training; the arguments are its settings. `batch` makes a batch of `samples`.

    `half` is autocast in bfloat16, `whole_half` a model in bfloat16, `passes` the micro-batches of a step.
    """

    def __init__(
        self, make, batch, samples, *, optimizer="AdamW", half=False, whole_half=False, tf32=False, passes=1, kept=False
    ) -> None:
        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = tf32
        with torch.device(DEVICE):
            self.model = make()
        if whole_half:
            self.model.bfloat16()
        self.make_batch, self.samples, self.half, self.passes, self.kept = batch, samples, half, passes, kept
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())

    def batch(self):
        """Returns inputs and targets."""
        return self.make_batch(self.samples)

    def loss(self, inputs, targets):
        """Returns the loss of a batch."""
        if inputs.is_floating_point():
            inputs = inputs.to(next(self.model.parameters()).dtype)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=self.half):
            return F.cross_entropy(self.model(inputs).flatten(0, -2).float(), targets.flatten())

    def step(self) -> None:
        """Trains a step."""
        self.optimizer.zero_grad(set_to_none=not self.kept)
        for _ in range(self.passes):
            self.loss(*self.batch()).backward()
        self.optimizer.step()
