import math

from optimist.cli.arguments import print_result


def test_a_table_within_a_result_is_set_in_below_its_name(capsys):
    result = {
        "env": "CartPole-v1",
        "env_kwargs": {},
        "final_evaluation": {"episodes": 1, "standard_error": math.nan, "deeper": {"solved": True}},
        "steps": 10_000,
    }
    print_result(result, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "env         CartPole-v1",
        "env_kwargs  –",
        "final_evaluation",
        "  episodes        1",
        "  standard_error  –",
        "  deeper",
        "    solved  yes",
        "steps       10,000",
    ]
