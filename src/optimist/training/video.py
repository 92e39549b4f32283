"""Pictures → a GIF or an MP4."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.errors import ConfigError, missing_extra
from optimist.tracking.files import disk_errors, write_whole

Picture = NDArray[np.uint8]
NEEDED = {".gif": ("a GIF", "pillow", "PIL"), ".mp4": ("an MP4", "imageio-ffmpeg", "imageio_ffmpeg")}
KINDS = tuple(NEEDED)
SMALLEST = 320  # pixels that the longer side is enlarged to, at least


def write_film(pictures: Sequence[Picture], path: Path, fps: float) -> None:
    """Write pictures, [H, W] grey or [H, W, 3], to the kind of file its name says; small ones are enlarged."""
    check_kind(path)
    if not pictures:
        raise ConfigError(f"nothing to write to {path}: there are no pictures")
    enlarged = [_enlarge(picture) for picture in pictures]
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write = _write_gif if path.suffix == ".gif" else _write_mp4
    write_whole(path, lambda temporary: write(enlarged, temporary, fps))


def check_kind(path: Path) -> None:
    """Raise unless this kind of file can be written here."""
    if path.suffix not in KINDS:
        raise ConfigError(f"a film is written as {' or '.join(KINDS)}, got {path.name}")
    what, package, module = NEEDED[path.suffix]
    if importlib.util.find_spec(module) is None:
        raise missing_extra(what, "video", package)


def _enlarge(picture: Picture) -> Picture:
    """Whole pixels repeated, colour in three channels, even sides as MP4 needs them."""
    if picture.ndim == 2:
        picture = np.repeat(picture[:, :, None], 3, axis=2)
    factor = -(-SMALLEST // max(picture.shape[:2]))
    picture = picture.repeat(factor, axis=0).repeat(factor, axis=1)
    height, width = (side - side % 2 for side in picture.shape[:2])
    return np.ascontiguousarray(picture[:height, :width])


def _write_gif(pictures: Sequence[Picture], path: Path, fps: float) -> None:
    from PIL import Image

    first, *others = (Image.fromarray(picture) for picture in pictures)
    first.save(path, save_all=True, append_images=others, duration=round(1000 / fps), loop=0)


def _write_mp4(pictures: Sequence[Picture], path: Path, fps: float) -> None:
    from imageio_ffmpeg import write_frames

    path.open("ab").close()  # ffmpeg's own words about a file it cannot write are many
    height, width = pictures[0].shape[:2]
    writer: Any = write_frames(str(path), (width, height), fps=fps, macro_block_size=2, ffmpeg_log_level="error")
    writer.send(None)
    try:
        for picture in pictures:
            writer.send(picture)
    finally:
        writer.close()
