import pytest

from optimist.errors import ConfigError
from optimist.presets import get_preset
from optimist.sweep.space import Choice, Range, nested, space_from_file, space_from_flags

CONFIG = get_preset("deepsea/opr")()


def test_flags_give_ranges_and_choices():
    flags = [
        "algorithm.learning-rate=log:1e-4..1e-2",
        "opr.percentile=50..95",
        "algorithm.epochs=1..8",
        "network.activation=tanh,relu",
    ]
    assert space_from_flags(flags, CONFIG) == {
        "algorithm.learning_rate": Range(1e-4, 1e-2, log=True),
        "opr.percentile": Range(50, 95),
        "algorithm.epochs": Range(1, 8, whole=True),
        "network.activation": Choice(("tanh", "relu")),
    }


def test_a_file_says_the_same_with_nested_tables_or_dotted_names(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(
        "opr.percentile = {low = 50, high = 95}\n[algorithm]\nlearning_rate = {low = 1e-4, high = 1e-2, log = true}\n"
        '[network]\nactivation = ["tanh", "relu"]\n'
    )
    flags = ["opr.percentile=50..95", "algorithm.learning_rate=log:1e-4..1e-2", "network.activation=tanh,relu"]
    assert space_from_file(path, CONFIG) == space_from_flags(flags, CONFIG)


def test_settings_nest_by_their_dots():
    assert nested({"opr.bc_coef": 1, "opr.percentile": 2, "threads": 3}) == {
        "opr": {"bc_coef": 1, "percentile": 2},
        "threads": 3,
    }


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("algorithm.gama=0.9..0.99", "no setting 'algorithm.gama'; did you mean 'algorithm.gamma'?"),
        ("algorithm.gamma=0.9..1.1", "ppo.gamma must lie in [0, 1], got 1.1"),
        ("algorithm.gamma=0.99..0.9", "algorithm.gamma must be searched from low to high, got 0.99..0.9"),
        ("algorithm.gamma=a..b", "algorithm.gamma must be searched between two numbers"),
        ("algorithm.epochs=1..2.5", "algorithm.epochs must be searched between two whole numbers"),
        ("algorithm.learning_rate=log:0..1", "algorithm.learning_rate must be searched from low to high, above 0"),
        ("algorithm.learning_rate=log:1,2", "log: goes with a range LOW..HIGH"),
        ("network.activation=tanh,rleu", "no network.activation called 'rleu'; did you mean 'relu'?"),
        ("network.activation=tanh", "network.activation must list at least two plain values, got ['tanh']"),
        ("opr.percentile", "--search opr.percentile: a setting and where to look, as in"),
        ("seed=1..5", "seed is not to be searched for"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(flag, line):
    with pytest.raises(ConfigError) as error:
        space_from_flags([flag], CONFIG)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_an_empty_space_and_a_strange_file_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="nothing to search for"):
        space_from_flags([], CONFIG)
    path = tmp_path / "space.toml"
    path.write_text("threads = 2\n")
    with pytest.raises(ConfigError, match="threads must be a list of values or"):
        space_from_file(path, CONFIG)
    path.write_text("threads = {low = 1, hihg = 2}\n")
    with pytest.raises(ConfigError, match="no key of threads 'hihg'; did you mean 'high'"):
        space_from_file(path, CONFIG)
