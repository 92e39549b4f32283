from optimist.cli.arguments import print_result


def test_a_result_is_printed_in_words_and_a_nested_table_is_indented_below_its_name(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    result = {
        "env": "CartPole-v1",
        "env_kwargs": {},
        "goal_rate": None,
        "final_evaluation": {"episodes": 1, "mean_return": float("nan"), "deeper": {"solved": True}},
        "statistic": "mean raw return of the last 100 training episodes",
        "time/seconds": 10_000,
    }
    print_result(result, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "env           CartPole-v1",
        "final evaluation",
        "  episodes     1",
        "  mean return  –",
        "  deeper",
        "    solved  yes",
        "statistic     mean raw return of the",
        "              last 100 training episodes",
        "time seconds  10,000",
    ]
