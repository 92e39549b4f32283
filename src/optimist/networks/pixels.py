"""PixelConv2d: the first convolution, which takes bytes and scales them itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

BLOCK = 4
"""Pixels of a block, in both directions: as many as the convolution moves by, and a whole word of bytes."""
WHITE = 255.0


class PixelConv2d(nn.Conv2d):
    """8 × 8 pixels at a stride of 4, of images of bytes 0..255 that count as 0..1.

    On a GPU the image is cut into blocks of 4 × 4 pixels that become channels, 16 for each. What is left is a
    convolution of 2 × 2 blocks at a stride of 1: the same sums, for which there are faster kernels than for images of
    four channels. The pixels are whole numbers there, and the weights are scaled.
    """

    def __init__(self, channels: int, features: int) -> None:
        super().__init__(channels, features, 2 * BLOCK, BLOCK)

    def forward(self, images: Tensor) -> Tensor:
        """[B, C, H, W] → [B, features, (H − 4) / 4, (W − 4) / 4]; numbers that are no bytes are scaled already."""
        if images.dtype != torch.uint8:
            return super().forward(images)
        if images.is_cuda and images.shape[2] % BLOCK == images.shape[3] % BLOCK == 0:
            return self.by_blocks(images)
        return super().forward(images.float() / WHITE)

    def by_blocks(self, images: Tensor) -> Tensor:
        """The same of images whose height and width are multiples of 4."""
        batch, channels, height, width = images.shape
        high, wide = height // BLOCK, width // BLOCK
        words = images.contiguous().view(torch.int32).view(batch, channels, high, BLOCK, wide)
        blocks = words.permute(0, 2, 4, 1, 3).contiguous().view(torch.uint8)  # [B, H/4, W/4, C, 16]
        seen = blocks.view(batch, high, wide, -1).permute(0, 3, 1, 2)  # channels last in memory
        weights = self.weight.view(-1, channels, 2, BLOCK, 2, BLOCK).permute(0, 1, 3, 5, 2, 4)
        weights = weights.reshape(len(self.weight), -1, 2, 2).contiguous(memory_format=torch.channels_last) / WHITE
        kind = images.device.type
        precision = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weights.dtype
        return conv2d(seen.to(precision), weights, self.bias)
