"""The convolutional trunk of Mnih et al. (2015) for stacks of 84 × 84 frames."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from optimist.errors import ConfigError
from optimist.networks.initialize import Layer, orthogonal
from optimist.networks.pixels import PixelConv2d

SMALLEST = 36  # pixels that the three convolutions need


class NatureCNN(nn.Sequential):
    """The layers one after the other, computed in bfloat16 if asked for."""

    in_bfloat16 = False

    def forward(self, images: Tensor) -> Tensor:
        """Bytes [B, C, H, W] → [B, features] in float32."""
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self.in_bfloat16, cache_enabled=False):
            features: Tensor = super().forward(images)  # type: ignore[no-untyped-call]
        return features.float()


def make_nature_cnn(
    shape: tuple[int, ...], features: int, precision: str = "float32", *, orthogonal_init: bool = True
) -> NatureCNN:
    """32 × 8×8/4, 64 × 4×4/2, 64 × 3×3/1, linear; ReLU after each; orthogonal with gain √2, or as PyTorch has it."""
    if len(shape) != 3 or min(shape[1:]) < SMALLEST:
        raise ConfigError(
            f"nature_cnn sees images [channels, height, width] of at least {SMALLEST} × {SMALLEST}, "
            f"got {list(shape)}; a wrapper can put channels first"
        )

    def begun(layer: Layer) -> Layer:
        return orthogonal(layer, 2**0.5) if orthogonal_init else layer

    convolutions = nn.Sequential(
        begun(PixelConv2d(shape[0], 32)),
        nn.ReLU(),
        begun(nn.Conv2d(32, 64, 4, 2)),
        nn.ReLU(),
        begun(nn.Conv2d(64, 64, 3, 1)),
        nn.ReLU(),
        nn.Flatten(),
    )
    with torch.no_grad():
        width = convolutions(torch.zeros(1, *shape)).shape[1]
    trunk = NatureCNN(*convolutions, begun(nn.Linear(width, features)), nn.ReLU())
    trunk.in_bfloat16 = precision == "bfloat16"
    return trunk
