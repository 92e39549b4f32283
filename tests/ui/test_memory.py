import json
import math
import shutil

import numpy as np
import pytest
import torch

from optimist.core.cloning import advantage_weights
from optimist.ui import memory as view
from optimist.ui.app import Site
from optimist.ui.episode import film_bytes, film_shape, playback
from optimist.ui.folders import RunsFolder
from optimist.ui.memory import checkpoint_steps, chosen_step, remember
from optimist.ui.security import Guard
from tests.ui.conftest import serving


@pytest.fixture
def recall(trained):
    site = Site(RunsFolder(trained), Guard())
    return lambda name: remember(site, name, checkpoint_steps(trained / name)[-1])


def test_weight_and_log_ratio_are_those_of_the_policy_now(recall):
    memory = recall("cartpole-opr")
    row = memory.rows[0]
    good = memory.opr.memory.at(row.stored.rows, memory.frames_of(row.stored))
    with torch.no_grad():
        now, values = memory.policy.log_prob(good.obs, good.actions), memory.policy.value(good.obs)
    assert row.delta == pytest.approx(float((now - memory.opr.memory.pools["logp"][row.stored.rows]).mean()), abs=1e-5)
    assert row.weight == pytest.approx(float(advantage_weights(good.returns, values).mean()), abs=1e-5)


def test_a_new_checkpoint_says_when_and_above_what_an_episode_was_admitted(recall):
    memory = recall("cartpole-opr")
    for row in memory.rows:
        assert row.stored.total_reward >= row.stored.threshold > 0
        assert 0 < row.stored.step <= 2_048
        assert row.age == memory.opr.updates - row.stored.admitted_at
    assert sum(row.drawn for row in memory.rows) > 0


def test_ids_of_equal_episodes_differ(recall):
    ids = [row.id for row in recall("deepsea-opr").rows]
    assert len(set(ids)) == len(ids) > 1


def test_an_old_checkpoint_shows_dashes(trained, tmp_path, monkeypatch):
    shutil.copytree(trained / "cartpole-opr", tmp_path / "old")
    load = view.load_checkpoint

    def load_old(path):
        saved = load(path)
        for name in ("admissions", "draws"):
            del saved["state"]["algorithm"]["anchor"]["memory"][name]
        return saved

    monkeypatch.setattr(view, "load_checkpoint", load_old)
    memory = remember(Site(RunsFolder(tmp_path), Guard()), "old", checkpoint_steps(tmp_path / "old")[-1])
    assert {(row.values["threshold"], row.values["drawn"]) for row in memory.rows} == {(None, None)}
    assert all(math.isfinite(row.delta) for row in memory.rows)


def test_the_film_of_a_grid_has_a_picture_for_each_step(recall):
    memory = recall("deepsea-opr")
    stored = memory.rows[0].stored
    shape = film_shape(memory, stored)
    size = shape["width"] * shape["height"] * shape["channels"]
    pictures = np.frombuffer(film_bytes(memory, stored), np.uint8).reshape(-1, size)
    assert len(pictures) == len(stored.rows) == 4
    assert len({picture.tobytes() for picture in pictures}) == 4


def test_an_environment_without_pictures_is_shown_as_strips(recall):
    memory = recall("cartpole-opr")
    data = json.loads(json.dumps(playback(memory, memory.rows[0])))
    assert data["film"] is None
    assert np.shape(data["signals"]["heat"]) == (4, data["length"])
    assert np.allclose(np.sum(data["heat"], 0), 1.0, atol=0.01)
    assert set(data["stored"]) <= {0, 1}


def test_the_nearest_checkpoint_is_chosen():
    assert chosen_step([2_000, 4_000], None, None) == 4_000
    assert chosen_step([2_000, 4_000], "2000", None) == 2_000
    assert chosen_step([2_000, 4_000], "../9", "2400") == 2_000


def test_a_damaged_checkpoint_is_a_notice_on_the_page(runs):
    for part in (runs / "deepsea-opr" / "checkpoints").glob("step-*/tensors.safetensors"):
        part.write_bytes(b"damaged")
    with serving(runs) as site:
        text = site.get("/memory?run=deepsea-opr").text
    assert "cannot be read" in text
    assert "Traceback" not in text


def test_what_cannot_be_shown_is_said(runs):
    with serving(runs) as site:
        assert "has no memory" in site.get("/memory?run=fake-ppo-0").text
        assert "no checkpoint" in site.get("/memory?run=fake-opr-0").text
        assert "may have been deleted" in site.get("/memory?run=gone").text
        assert "is not stored at this checkpoint" in site.get("/memory?run=deepsea-opr&episode=gone").text


def test_news_count_what_was_admitted_and_evicted_since(runs):
    first, last = checkpoint_steps(runs / "deepsea-opr")
    with serving(runs) as site:
        assert "admitted" not in site.get(f"/memory/news?run=deepsea-opr&at={last}").text
        text = site.get(f"/memory/news?run=deepsea-opr&at={first}&ids=gone").text
    assert "admitted, 1 evicted since this page was opened" in text
