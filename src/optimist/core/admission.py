"""Station 3. Which finished episodes are good: the paper's strict threshold, or the gate."""

from __future__ import annotations

from optimist.core.config import OPRConfig


def is_good(total_reward: float, threshold: float, config: OPRConfig) -> bool:
    """Whether an episode with this return enters M, given τ = `threshold`.

    `paper`: R(E) > τ. Once more than 100 − P percent of the window tie at the best return nothing is admitted any
    more. `gated`: R(E) ≥ τ, so that ties at a ceiling keep M fresh, and above the floor if there is one.
    """
    if config.admission == "paper":
        return total_reward > threshold
    floor = float("-inf") if config.admission_floor is None else config.admission_floor
    return total_reward >= threshold and total_reward > floor
