"""Models of vision, text and recurrent trainings. The rules were written without a look at those in HELD_OUT."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, TOKENS, CLASSES = 600, 24, 10


class Cnn(nn.Module):
    """Convolutions with batch norm, as in the tutorials."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 4 * width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        self.head = nn.Linear(4 * width, CLASSES)

    def forward(self, images):
        return self.head(self.features(images).flatten(1))


class ResNet(nn.Module):
    """Residual blocks."""

    def __init__(self, width: int = 24, blocks: int = 3) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, width, 3, padding=1), nn.Linear(width, CLASSES)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width),
            )
            for _ in range(blocks)
        )  # fmt: skip

    def forward(self, images):
        hidden = self.stem(images)
        for block in self.blocks:
            hidden = F.relu(hidden + block(hidden))
        return self.head(hidden.mean((2, 3)))


class VisionTransformer(nn.Module):
    """Patches and encoder layers."""

    def __init__(self, width: int = 96, layers: int = 3) -> None:
        super().__init__()
        self.patches, self.position = nn.Conv2d(3, width, 8, 8), nn.Parameter(torch.zeros(1, 16, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(width, CLASSES)

    def forward(self, images):
        hidden = self.patches(images).flatten(2).transpose(1, 2) + self.position
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden.mean(1))


class MobileNet(nn.Module):
    """Depthwise separable convolutions."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1)]
        for _ in range(4):
            layers += [
                nn.Conv2d(width, width, 3, padding=1, groups=width), nn.BatchNorm2d(width), nn.ReLU6(),
                nn.Conv2d(width, width, 1), nn.BatchNorm2d(width), nn.ReLU6(),
            ]  # fmt: skip
        self.features, self.head = nn.Sequential(*layers), nn.Linear(width, CLASSES)

    def forward(self, images):
        return self.head(self.features(images).mean((2, 3)))


class UNet(nn.Module):
    """An encoder and a decoder with skip connections, reduced to classes."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.down, self.deep = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.up, self.join = nn.ConvTranspose2d(2 * width, width, 2, 2), nn.Conv2d(2 * width, width, 3, padding=1)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, images):
        wide = F.gelu(self.down(images))
        narrow = self.up(F.gelu(self.deep(wide)))
        return self.head(F.gelu(self.join(torch.cat([wide, narrow], 1))).mean((2, 3)))


class DenseNet(nn.Module):
    """Layers that read all layers before them."""

    def __init__(self, growth: int = 12, layers: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 + growth * index, growth, 3, padding=1) for index in range(layers))
        self.norms = nn.ModuleList(nn.GroupNorm(3, growth) for _ in range(layers))
        self.head = nn.Linear(3 + growth * layers, CLASSES)

    def forward(self, images):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            images = torch.cat([images, F.relu(norm(layer(images)))], 1)
        return self.head(images.mean((2, 3)))


class Mixer(nn.Module):
    """Products over patches and over channels in turn."""

    def __init__(self, width: int = 64, patches: int = 64) -> None:
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, width, 4, 4), nn.Linear(width, CLASSES)
        self.across = nn.ModuleList(nn.Linear(patches, patches) for _ in range(3))
        self.within = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)) for _ in range(3))

    def forward(self, images):
        hidden = self.patches(images).flatten(2).transpose(1, 2)
        for across, within in zip(self.across, self.within, strict=True):
            hidden = hidden + F.gelu(across(hidden.transpose(1, 2))).transpose(1, 2)
            hidden = hidden + F.gelu(within(hidden))
        return self.head(hidden.mean(1))


class Encoder(nn.Module):
    """Encoder layers over tokens, with logits for each token."""

    def __init__(self, width: int = 128, layers: int = 2) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 256, batch_first=True) for _ in range(layers))
        self.checkpointed = False

    def forward(self, tokens):
        hidden = self.embed(tokens)
        for layer in self.layers:
            if self.checkpointed:
                hidden = torch.utils.checkpoint.checkpoint(layer, hidden, use_reentrant=False)
            else:
                hidden = layer(hidden)
        return self.head(hidden)


class Gpt(nn.Module):
    """Causal attention with stored attention matrices."""

    def __init__(self, width: int = 96, layers: int = 3) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(VOCABULARY, width), nn.Embedding(TOKENS, width)
        self.attend = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.mix = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(layers)
        )
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        samples, length = tokens.shape
        hidden = self.embed(tokens) + self.position(torch.arange(length))
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        for attend, mix in zip(self.attend, self.mix, strict=True):
            query, key, value = attend(hidden).view(samples, length, 3, 4, -1).permute(2, 0, 3, 1, 4)
            weights = (query @ key.transpose(-1, -2)).masked_fill(mask, -1e9).softmax(-1)
            hidden = hidden + (weights @ value).transpose(1, 2).reshape(samples, length, -1)
            hidden = hidden + mix(hidden)
        return self.head(hidden)


class TimeFirst(nn.Module):
    """Encoder layers over [time, batch, features]."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 2, 128) for _ in range(2))

    def forward(self, tokens):
        hidden = self.embed(tokens).transpose(0, 1)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden).transpose(0, 1)


class TextCnn(nn.Module):
    """Convolutions over tokens."""

    def __init__(self, width: int = 80) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))

    def forward(self, tokens):
        hidden = self.embed(tokens).transpose(1, 2)
        for layer in self.layers:
            hidden = F.silu(layer(hidden)) + hidden
        return self.head(hidden.transpose(1, 2))


class Flash(nn.Module):
    """Causal scaled_dot_product_attention with gated layers."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY, bias=False)
        self.attend = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.gate = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(2))
        self.back = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))

    def forward(self, tokens):
        hidden = self.embed(tokens)
        for attend, gate, back in zip(self.attend, self.gate, self.back, strict=True):
            parts = [part.unflatten(-1, (4, -1)).transpose(1, 2) for part in attend(hidden).chunk(3, -1)]
            hidden = hidden + F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)
            a, b = gate(F.layer_norm(hidden, hidden.shape[-1:])).chunk(2, -1)
            hidden = hidden + back(F.silu(a) * b)
        return self.head(hidden)


class Contrastive(nn.Module):
    """Two towers and logits of each sample against each other one: memory in the square of the samples."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width))
        self.right = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, features):
        return F.normalize(self.left(features)) @ F.normalize(self.right(features)).T


class Recurrent(nn.Module):
    """A recurrent layer of torch."""

    def __init__(self, kind: str, width: int = 96, **options) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 64)
        self.layer = getattr(nn, kind)(64, width, batch_first=True, **options)
        self.head = nn.Linear(width * (2 if options.get("bidirectional") else 1), VOCABULARY)

    def forward(self, tokens):
        return self.head(self.layer(self.embed(tokens))[0])


class Cell(nn.Module):
    """A recurrent cell in a Python loop."""

    def __init__(self, kind: type[nn.Module] = nn.GRUCell, width: int = 96) -> None:
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(VOCABULARY, 64), kind(64, width), nn.Linear(width, VOCABULARY)
        self.width = width

    def forward(self, tokens):
        embedded, state, states = self.embed(tokens), torch.zeros(tokens.shape[0], self.width), []
        for position in range(tokens.shape[1]):
            state = self.cell(embedded[:, position], state)
            states.append(state)
        return self.head(torch.stack(states, 1))


class Translator(nn.Module):
    """An encoder, a decoder and attention between them."""

    def __init__(self, width: int = 80) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, width), nn.Linear(2 * width, VOCABULARY)
        self.encoder, self.decoder = (
            nn.GRU(width, width, batch_first=True),
            nn.LSTM(width, width, 2, batch_first=True, dropout=0.1),
        )

    def forward(self, tokens):
        encoded = self.encoder(self.embed(tokens))[0]
        decoded = self.decoder(self.embed(tokens.flip(1)))[0]
        context = (decoded @ encoded.transpose(1, 2)).softmax(-1) @ encoded
        return self.head(torch.cat([decoded, context], -1))


MODELS: dict[str, tuple[str, Callable[[], nn.Module]]] = {
    "cnn": ("vision", Cnn),
    "resnet": ("vision", ResNet),
    "vision transformer": ("vision", VisionTransformer),
    "mobilenet": ("vision", MobileNet),
    "u-net": ("vision", UNet),
    "densenet": ("vision", DenseNet),
    "mixer": ("vision", Mixer),
    "encoder": ("text", Encoder),
    "gpt": ("text", Gpt),
    "time first": ("text", TimeFirst),
    "text cnn": ("text", TextCnn),
    "fused attention": ("text", Flash),
    "contrastive": ("features", Contrastive),
    "lstm": ("text", lambda: Recurrent("LSTM")),
    "gru": ("text", lambda: Recurrent("GRU")),
    "rnn, two layers": ("text", lambda: Recurrent("RNN", num_layers=2)),
    "lstm, both directions": ("text", lambda: Recurrent("LSTM", num_layers=2, bidirectional=True)),
    "gru cell": ("text", Cell),
    "lstm-like cell": ("text", lambda: Cell(nn.RNNCell, 128)),
    "translator": ("text", Translator),
}
"""Name to the kind of its data and its constructor."""

HELD_OUT = {
    "mobilenet", "u-net", "densenet", "mixer", "time first", "text cnn", "fused attention", "contrastive",
    "lstm, both directions", "lstm-like cell", "translator",
}  # fmt: skip
