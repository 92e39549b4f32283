"""CAGE Challenge 2: ids and labels of the package `cage2` here. Importing this package does not load Numba."""

from __future__ import annotations

from optimist.envs.family import Family
from optimist.errors import install_command


def cage2_label(red: str = "B_line", rules: str = "final", horizon: int = 30, green: str = "Sleep") -> str:
    """Attacker, rules and length of an episode."""
    return f"{red}, {rules} rules, {horizon} steps" + ("" if green == "Sleep" else f", green {green}")


LABEL_KWARGS = ("red", "rules", "horizon", "green")
FAMILIES = (
    Family(
        name="CAGE Challenge 2",
        envs={
            f"optimist/{name}-v0": {"entry_point": f"cage2.{single}", "vector_entry_point": f"cage2.{vector}"}
            for name, single, vector in (
                ("CAGE2", "env:CageEnv", "vector_env:CageVectorEnv"),  # 52 bits, 145 actions
                ("CAGE2Cardiff", "env:CardiffEnv", "cardiff:CardiffVectorEnv"),
                ("CAGE2Expert", "env:ExpertEnv", "expert.env:ExpertVectorEnv"),
            )
        },
        label=lambda _, kwargs: cage2_label(**{key: kwargs[key] for key in LABEL_KWARGS if key in kwargs}),
        label_kwargs=LABEL_KWARGS,
        performance_kwargs=("threads",),
        install=install_command("cage2"),
    ),
)
