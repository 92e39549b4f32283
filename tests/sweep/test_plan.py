import itertools
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.settings import REMOVED
from optimist.errors import ConfigError, UnknownName
from optimist.sweep.plan import make_plan, read_plan
from tests.sweep.tiny import DOCUMENT, tiny_file, tiny_plan


def test_a_plan_is_the_product_of_presets_flags_variants_and_seeds():
    plan = make_plan(
        {
            "presets": ["cage2/cardiff", "cage2/cardiff-opr"],
            "flags": {"red": ["B_line", "Meander"], "horizon": 30},
            "variants": {"plain": {}, "short": {"total_steps": 60_000}},
            "seeds": [3, 7],
        }
    )
    assert len(plan.runs) == 2 * 2 * 2 * 2
    run = next(run for run in plan.runs if run.name == "cage2-cardiff-opr_red-Meander_horizon-30_short/seed-7")
    assert run.config.env.kwargs["red"] == "Meander"
    assert (run.config.total_steps, run.config.seed, run.config.preset) == (60_000, 7, "cage2/cardiff-opr")
    assert run.method == "cage2/cardiff-opr · short"
    assert run.env == "CAGE2Cardiff-v0 red=Meander horizon=30"


def test_the_label_of_an_environment_has_no_repetition():
    (run,) = tiny_plan(presets=["gym/ppo"], flags={"env": "CartPole-v1"}, seeds=1).runs
    assert run.env == "CartPole-v1"
    (run,) = tiny_plan(presets=["deepsea/ppo"], flags={"size": 5}, seeds=1).runs
    assert run.env == "DeepSea-v0 size=5"


def test_the_first_seed_and_their_number_give_the_seeds():
    assert [run.config.seed for run in tiny_plan(presets=["deepsea/ppo"], seeds=3, first_seed=100).runs] == [
        100,
        101,
        102,
    ]


def test_the_folder_of_the_results_is_relative_to_the_file(tmp_path):
    path = tiny_file(tmp_path, more='out = "../results/tiny"\n')
    assert read_plan(path).out == tmp_path.parent / "results" / "tiny"


def test_seeds_are_the_outermost_loop():
    seeds = [run.config.seed for run in tiny_plan(seeds=3).runs]
    assert seeds == sorted(seeds)


def test_groups_inherit_and_their_settings_override_those_of_the_file():
    plan = make_plan(
        {
            "seeds": 2,
            "settings": {"total_steps": 1_000, "opr": {"bc_coef": 0.3}},
            "groups": [
                {"presets": ["deepsea/opr"], "flags": {"size": 6}},
                {"presets": ["keydoor/opr"], "seeds": 1, "settings": {"opr": {"percentile": 60.0}}},
            ],
        }
    )
    deepsea, keydoor = plan.runs[0].config, plan.runs[1].config
    assert [run.name for run in plan.runs] == [
        "deepsea-opr_size-6/seed-0",
        "keydoor-opr/seed-0",
        "deepsea-opr_size-6/seed-1",
    ]
    assert (deepsea.opr.bc_coef, keydoor.opr.bc_coef, keydoor.opr.percentile) == (0.3, 0.3, 60.0)
    assert deepsea.total_steps == keydoor.total_steps == 1_000


def test_settings_may_be_given_by_their_full_names():
    plan = tiny_plan(settings={"opr.percentile": 90, "opr": {"bc_coef": 0.3}}, variants={"x": {"opr.percentile": 80}})
    assert {(run.config.opr.percentile, run.config.opr.bc_coef) for run in plan.runs} == {(80.0, 0.3)}
    assert plan.runs[0].origin["settings"]["opr"] == {"percentile": 80, "bc_coef": 0.3}


@settings(max_examples=25)
@given(
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True),
    sizes=st.lists(st.integers(3, 9), min_size=1, max_size=3, unique=True),
)
def test_every_combination_occurs_exactly_once(seeds, sizes):
    plan = tiny_plan(seeds=seeds, flags={"size": sizes})
    found = sorted((run.config.preset, run.config.env.kwargs["size"], run.config.seed) for run in plan.runs)
    assert found == sorted(itertools.product(DOCUMENT["presets"], sizes, seeds))
    assert len({run.name for run in plan.runs}) == len(plan.runs)


def test_runs_on_a_gpu_share_it():
    run = tiny_plan(settings={"device": "cuda", "threads": 2}, runs_per_gpu=5).runs[0]
    assert (run.cpus, run.gpus) == (2.0, 0.2)
    assert tiny_plan().runs[0].gpus == 0.0


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"sedes": 3}, "no setting 'sedes'; did you mean 'seeds'?"),
        ({"groups": [{"preset": []}]}, "no setting 'preset'; did you mean 'presets'?"),
        ({"groups": {"presets": []}}, "groups must be a list, got {'presets': []}"),
        ({"presets": ["deepsea/orp"]}, "no preset 'deepsea/orp'; did you mean 'deepsea/opr'?"),
        ({"presets": "deepsea/opr"}, "presets must be a list, got 'deepsea/opr'"),
        ({"flags": {"siez": 5}}, "no flag of deepsea/ppo called 'siez'; did you mean 'size'?"),
        ({"flags": {"total_steps": 500}}, "'total_steps'; write settings.total_steps = 500"),
        ({"flags": {"percentile": 90.0}}, "'percentile'; write settings.opr.percentile = 90.0"),
        ({"flags": {"opr": {"percentile": 90}}}, "'opr.percentile'; write settings.opr.percentile = 90"),
        (
            {"flags": {"epochs": [2, 4]}},
            "'epochs'; write [variants.NAME] for each value, with algorithm.epochs = 2 below it",
        ),
        ({"total_steps": 500}, "no key 'total_steps' in a sweep file; write settings.total_steps = 500"),
        ({"groups": [{"opr": {"percentile": 90}}]}, "no key 'opr' in a sweep file; write settings.opr"),
        ({"settings": {"size": 7}}, "no setting 'size'; write flags.size = 7"),
        ({"settings": {"percentile": 7}}, "no setting 'percentile'; did you mean 'opr.percentile'?"),
        ({"flags": {"size": "5"}}, "flags.size of deepsea/ppo must be int, got '5'"),
        ({"flags": {"size": []}}, "flags.size is an empty list"),
        ({"flags": 5}, "flags must be a table, got 5"),
        ({"settings": {"total_stesp": 5}}, "no setting 'total_stesp'; did you mean 'total_steps'?"),
        ({"settings": {"opr": {"bc_coeff": 5}}}, "no setting 'opr.bc_coeff'; did you mean 'opr.bc_coef'?"),
        ({"settings": {"seed": 5}}, "settings cannot hold seed; use seeds = …"),
        (
            {"settings": {"env": {"kwargs": {"size": 7}}}},
            "settings contradict flags of deepsea/ppo (env.kwargs.size 5 → 7); set each in one place",
        ),
        ({"settings": {"total_steps": 5.5}}, "total_steps must be a whole number, got 5.5"),
        ({"variants": {"x": {"opr": {"percentile": 101.0}}}}, "opr.percentile must be between 0 and 100, got 101.0"),
        ({"variants": {"x": 3}}, "variants.x must be a table, got 3"),
        ({"seeds": 0}, "seeds must be a number of seeds or a list of them, as in seeds = 5, got 0"),
        ({"seeds": [0, 0]}, "two runs of the file are called deepsea-ppo_size-5/seed-0"),
        ({"statistic": "finl"}, "no statistic called 'finl'; did you mean 'final'?"),
        ({"statistic": "final"}, "statistic 'final' needs final episodes, deepsea/ppo plays none: set final_episodes"),
        (
            {"statistic": "best-epoch"},
            "statistic 'best-epoch' needs evaluations, deepsea/ppo makes none: set evaluate_every",
        ),
        ({"presets": []}, 'presets must be a list of at least one name, as in presets = ["deepsea/opr"]'),
        ({"retries": -1}, "retries must be at least 0, got -1"),
        ({"keep_checkpoints": "no"}, "keep_checkpoints must be true or false, got 'no'"),
        ({"cpus": 0}, "cpus must be above 0 or none, got 0"),
        ({"runs_per_gpu": 0}, "runs_per_gpu must be at least 1, got 0"),
        ({"first_seed": -1}, "first_seed must be at least 0, got -1"),
        (
            {"first_seed": 1, "seeds": [3]},
            "first_seed goes with a number of seeds, not with a list; remove one of them",
        ),
        (
            {"score_episodes": 10},
            "score_episodes works with CAGE 2 only, deepsea/ppo has optimist/DeepSea-v0: remove one of them",
        ),
        ({"measures": "solved"}, "measures must be a list, got 'solved'"),
        ({"baseline": "deepsea/orp"}, "no method for baseline 'deepsea/orp'; did you mean 'deepsea/opr'?"),
        ({"average_over": "siez"}, "no flag for average_over 'siez'; did you mean 'size'?"),
        ({"out": 5}, "out must be text, got 5"),
    ],
)
def test_an_error_in_a_file_is_one_line(change, line):
    with pytest.raises(ConfigError) as error:
        tiny_plan(**change)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_a_removed_setting_is_answered_with_its_successor(tmp_path, monkeypatch):
    monkeypatch.setitem(REMOVED, "opr.gone", "set opr.bc_coef instead")
    (tmp_path / "sweep.toml").write_text('presets = ["deepsea/opr"]\nseeds = 1\n[settings.opr]\ngone = 1\n')
    with pytest.raises(UnknownName, match=r"sweep.toml: opr.gone no longer exists: set opr.bc_coef instead"):
        read_plan(tmp_path / "sweep.toml")


def test_the_example_and_the_files_in_the_docs_are_valid():
    root = Path(__file__).parents[2]
    assert len(read_plan(root / "experiments" / "ray.toml").runs) == 2 * 4 * 8
    page = (root / "docs" / "scale.md").read_text(encoding="utf-8")
    first, atari = (make_plan(tomllib.loads(text)) for text in re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL))
    assert len(first.runs) == 40
    assert {run.gpus for run in atari.runs} == {0.25}


def test_the_error_names_the_file(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text("sedes = 3\n")
    with pytest.raises(ConfigError, match=r"my\.toml: no setting 'sedes'"):
        read_plan(path)
    path.write_text("seeds =\n")
    with pytest.raises(ConfigError, match=r"my\.toml is not valid TOML"):
        read_plan(path)
    with pytest.raises(ConfigError, match=r"cannot read config file .*absent\.toml"):
        read_plan(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("preset", "flags", "line"),
    [
        ("atari/fast", "game = ['Pong', 'Brekout']", r"my\.toml: no Atari game 'Brekout'; did you mean 'Breakout'\?"),
        ("atari/fast", "game = ['Pong', 'Joust']", r"my\.toml: Joust is a multiplayer game"),
        ("gym/ppo", "env = 'CartPol-v1'", r"my\.toml: no environment 'CartPol-v1'; did you mean 'CartPole-v1'\?"),
    ],
)
def test_unknown_games_and_environments_are_reported_before_the_first_run(preset, flags, line, tmp_path):
    (tmp_path / "my.toml").write_text(f'presets = ["{preset}"]\nseeds = 1\nflags.{flags}\n')
    with pytest.raises(ConfigError, match=line):
        read_plan(tmp_path / "my.toml")


def test_packages_that_only_the_node_may_have_are_left_to_the_run(tmp_path, monkeypatch):
    path = tmp_path / "my.toml"
    path.write_text('presets = ["gym/ppo"]\nseeds = 1\nflags.env = "not_here:Some-v0"\n')
    assert len(read_plan(path).runs) == 1
    path.write_text('presets = ["atari/fast"]\nseeds = 1\nflags.game = "Brekout"\n')
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert len(read_plan(path).runs) == 1
