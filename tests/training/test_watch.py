"""Films of a run's policy and memory: environments with pictures, with text, and with neither."""

import dataclasses
import os
import subprocess
import sys

import gymnasium
import pytest

from optimist.cli.main import main
from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig, SILConfig
from optimist.core.config import OPRConfig
from optimist.errors import ConfigError
from optimist.training.trainer import train
from optimist.training.watch import film_agent, film_memory

DEEPSEA = RunConfig(
    total_steps=256,
    env=EnvConfig(id="optimist/DeepSea-v0", num_envs=8, kwargs={"size": 4}),
    network=NetworkConfig(hidden=(8,)),
    algorithm=PPOConfig(rollout_steps=16, minibatch_size=64, epochs=1),
    opr=OPRConfig(bc_batch_size=16),
    checkpoint_every=128,
    tensorboard=False,
)


@pytest.fixture(scope="module")
def deepsea(tmp_path_factory):
    path = tmp_path_factory.mktemp("watch") / "deepsea"
    train(DEEPSEA, path, progress=False)
    return path


class FourSteps(gymnasium.Env):
    """Four steps; nothing can be drawn."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": []}  # noqa: RUF012

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.high, {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.high, float(action), self.steps == 4, False, {}


gymnasium.register("test/FourSteps-v0", FourSteps)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("watch") / "plain"
    env = EnvConfig(id="test/FourSteps-v0", num_envs=8, vectorization="sync")
    train(dataclasses.replace(DEEPSEA, env=env), path, progress=False)
    return path


def test_an_environment_without_pictures_gives_lines(plain):
    film = film_agent(plain)
    assert film.pictures == []
    assert film.grid == ""
    assert len(film.lines) == 4


def test_a_grid_world_gives_a_picture_for_each_step_and_its_path(deepsea):
    film = film_agent(deepsea)
    assert film.pictures[0].shape == (384, 384, 3)
    assert len(film.pictures) == 5  # the start, and one after each of four steps
    assert film.grid.count("*") + film.grid.count("o") == 4
    assert len(film.lines) == 4  # an episode of DeepSea-4 has four steps
    stored = film_memory(deepsea, 1)
    assert len(stored.pictures) == 4
    assert stored.grid.count("o") == 1
    assert film.title.startswith("final policy, sampled actions: return ")
    assert film.title.endswith("in 4 steps")
    again = film_agent(deepsea)
    assert (again.title, again.lines, again.grid) == (film.title, film.lines, film.grid)
    assert film_agent(deepsea, greedy=True, max_steps=2).title.endswith("in 2 steps, stopped there")


def test_episodes_of_the_memory_are_ranked_by_return(deepsea):
    best, second = film_memory(deepsea, 1), film_memory(deepsea, 2)
    assert [len(film.lines) for film in (best, second)] == [4, 4]
    returns = [float(film.title.partition("return ")[2].partition(",")[0]) for film in (best, second)]
    assert returns == sorted(returns, reverse=True)
    assert float(best.lines[-1].split()[-1]) == pytest.approx(returns[0])
    with pytest.raises(ConfigError, match=r"holds (\d+) episodes at step 256: --episode must be 1 to \1, got 5000"):
        film_memory(deepsea, 5000)
    with pytest.raises(ConfigError, match="got 0"):
        film_memory(deepsea, 0)
    cut = film_memory(deepsea, 1, max_steps=2)
    assert len(cut.lines) == 2
    assert cut.title == f"{best.title}, the first 2 of them shown"


def test_the_memory_of_a_run_with_opr_and_self_imitation_is_shown(tmp_path):
    train(dataclasses.replace(DEEPSEA, sil=SILConfig(enabled=True, batch_size=16)), tmp_path / "run", progress=False)
    assert "in the memory at step 256" in film_memory(tmp_path / "run").title


def test_an_environment_with_pictures_gives_one_for_each_step(tmp_path, capsys):
    config = dataclasses.replace(DEEPSEA, env=EnvConfig(id="CartPole-v1", num_envs=4), opr=OPRConfig(enabled=False))
    train(config, tmp_path / "run", progress=False)
    film = film_agent(tmp_path / "run", max_steps=12)
    assert len(film.lines) >= 8
    assert len(film.pictures) in (len(film.lines), len(film.lines) + 1)  # one more if the episode continues
    assert film.pictures[0].shape == (400, 600, 3)
    assert film.fps == 50
    assert main(["watch", str(tmp_path / "run"), "--steps", "3", "--out", str(tmp_path / "film.gif")]) == 0
    assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF89a")
    assert capsys.readouterr().out.splitlines()[-1] == f"written to {tmp_path / 'film.gif'}"
    assert main(["watch", str(tmp_path / "run"), "--episode", "1"]) == 2
    assert "was trained without OPR" in capsys.readouterr().err


def test_an_environment_that_cannot_be_rendered_is_one_error_line(tmp_path, monkeypatch, capsys):
    env = EnvConfig(id="CartPole-v1", num_envs=4, vectorization="sync")
    config = dataclasses.replace(DEEPSEA, env=env, opr=OPRConfig(enabled=False))
    train(config, tmp_path / "run", progress=False)

    def fail(self):
        raise RuntimeError("no OpenGL platform")

    monkeypatch.setattr("gymnasium.vector.SyncVectorEnv.render", fail)
    assert main(["watch", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.strip().endswith("here: no OpenGL platform")


def test_cage2_gives_a_picture_for_each_step(tmp_path):
    config = dataclasses.replace(
        DEEPSEA, env=EnvConfig(id="optimist/CAGE2-v0", num_envs=8, kwargs={"red": "B_line", "horizon": 8},
                               truncation="end"),
    )  # fmt: skip
    train(config, tmp_path / "run", progress=False)
    film = film_agent(tmp_path / "run", max_steps=3)
    assert len(film.pictures) == 4  # before each of three steps and after them
    assert sum("reward" in line for line in film.lines) == 3


def test_the_command_writes_a_film_of_a_grid_world_and_prints_its_path(deepsea, tmp_path, capsys):
    film = tmp_path / "film.gif"
    assert main(["watch", str(deepsea), "--out", str(film)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [len(line) for line in lines[:4]] == [7] * 4
    assert lines[4].startswith("final policy, sampled actions: return ")
    assert film.read_bytes().startswith(b"GIF89a")
    assert main(["watch", str(deepsea), "--text"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("     1  action ")


def test_the_command_prints_lines_and_refuses_wrong_flags_in_one_line(plain, capsys):
    assert main(["watch", str(plain)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("     1  action ")
    assert main(["watch", str(plain), "--episode", "1"]) == 0
    assert " in the memory at step 256: return " in capsys.readouterr().out
    for arguments, message in (
        (["--out", "x.gif"], "cannot be drawn: its environment has no pictures"),
        (["--episode", "1", "--greedy"], "leave out --greedy and --seed"),
        (["--out", "x.gif", "--episode", "1"], "cannot be drawn: its memory stores no pictures"),
        (["--out", "x.avi"], "a film is written as .gif or .mp4, got x.avi"),
        (["--steps", "0"], "--steps must be at least 1"),
        (["--out", f"{plain}/summary.json/x.gif"], "summary.json is not a folder; choose another --out"),
    ):
        assert main(["watch", str(plain), *arguments]) == 2
        assert message in capsys.readouterr().err
    assert sorted(p.name for p in plain.glob("*.gif")) == []


@pytest.mark.parametrize("out", ["film.xyz", "folder.gif", "file/film.gif", "locked/new/film.gif"])
def test_a_film_that_cannot_be_written_is_refused_before_the_episode(out, tmp_path, monkeypatch, capsys):
    (tmp_path / "folder.gif").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "locked").mkdir()
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / "locked" and allowed(path, mode))
    monkeypatch.setattr("optimist.training.watch.film_agent", lambda *_, **__: pytest.fail("an episode was played"))
    assert main(["watch", "absent", "--out", str(tmp_path / out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "locked" / "new").exists()


def test_a_wrong_kind_of_film_is_refused_before_torch_is_imported():
    code = (
        "import sys\nfrom optimist.cli.main import main\n"
        "assert main(['watch', 'absent', '--out', 'film.xyz']) == 2\n"
        "print('torch' in sys.modules or 'gymnasium' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_progress_is_printed_on_stderr(plain, capsys):
    assert main(["watch", str(plain), "--steps", "3"]) == 0
    assert capsys.readouterr().err == "playing, at most 3 steps ...\n"
    assert main(["evaluate", str(plain), "--episodes", "7", "--json"]) == 0
    assert capsys.readouterr().err == "playing 7 episodes ...\n"
