"""Pictures written as GIF or MP4."""

import sys

import numpy as np
import pytest
from PIL import Image

from optimist.errors import ConfigError, MissingExtra, RunFolderError
from optimist.training.video import write_film


def pictures(count, shape=(84, 84)):
    found = np.zeros((count, *shape), np.uint8)
    for i in range(count):
        found[i, i] = 200  # a line one row lower in each picture
    return list(found)


def test_a_gif_has_every_picture_enlarged_at_the_given_rate(tmp_path):
    write_film(pictures(12), tmp_path / "new/film.gif", fps=20)
    with Image.open(tmp_path / "new/film.gif") as film:
        assert (film.n_frames, film.size, film.info["duration"]) == (12, (336, 336), 50)
        for i in range(12):
            film.seek(i)
            rows = np.asarray(film.convert("L")).mean(axis=1) > 100
            assert np.flatnonzero(rows).tolist() == [4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3]


def test_colours_and_large_pictures_are_unchanged(tmp_path):
    picture = np.zeros((400, 601, 3), np.uint8)
    picture[..., 1] = 180
    write_film([picture], tmp_path / "film.gif", fps=30)
    with Image.open(tmp_path / "film.gif") as film:
        assert film.size == (600, 400)
        assert np.asarray(film.convert("RGB"))[5, 5].tolist() == [0, 180, 0]


def test_an_mp4_has_the_same_pictures(tmp_path):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    write_film(pictures(15), tmp_path / "film.mp4", fps=15)
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "film.mp4"))
    assert (count, seconds) == (15, pytest.approx(1.0, abs=0.1))
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "film.mp4"))
    assert next(reader)["size"] == (336, 336)
    first = np.frombuffer(next(reader), np.uint8).reshape(336, 336, 3)
    assert first[:4].mean() > 150 > 50 > first[20:].mean()


def test_a_film_that_cannot_be_written_is_one_error_line(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"written as \.gif or \.mp4, got film\.avi"):
        write_film(pictures(2), tmp_path / "film.avi", fps=15)
    with pytest.raises(ConfigError, match="there are no pictures"):
        write_film([], tmp_path / "film.gif", fps=15)
    (tmp_path / "file").write_text("no folder")
    for name in ("film.gif", "film.mp4"):
        with pytest.raises(RunFolderError, match=f"cannot write .*{name}"):
            write_film(pictures(2), tmp_path / "file" / name, fps=15)
    for name, extra in (("imageio_ffmpeg", "mp4"), ("PIL", "gif")):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingExtra, match=r"pip install '.\[video\]'"):
            write_film(pictures(2), tmp_path / f"film.{extra}", fps=15)
