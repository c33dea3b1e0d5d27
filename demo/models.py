"""Small models that several trainings of the demo share."""
# mypy: allow-untyped-calls

from itertools import pairwise

import torch
from torch import nn


def classifier(widths: tuple[int, ...], classes: int = 10) -> nn.Sequential:
    """Returns a convolutional classifier of RGB images with one 3x3 convolution of stride 2 per width."""
    convolutions: list[nn.Module] = []
    for narrow, wide in pairwise((3, *widths)):
        convolutions += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes))


def perceptron(*widths: int) -> nn.Sequential:
    """Returns linear layers of these widths with ReLUs between them."""
    layers: list[nn.Module] = []
    for narrow, wide in pairwise(widths):
        layers += [nn.Linear(narrow, wide), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Encoder(nn.Module):
    """A transformer encoder with `layers` layers of size `width`, and a classification head."""

    def __init__(self, width: int, layers: int, heads: int = 8, classes: int = 10) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, dim_feedforward=4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, length, width) to logits (batch, classes)."""
        logits: torch.Tensor = self.head(self.encoder(tokens).mean(dim=1))
        return logits
