"""What tests of several folders ask about metrics."""

from optimist.tracking.writers import known_metrics


def without_time(metrics):
    """The metrics that two equal runs share: all but the wall clock's, `time/…`."""
    return {name: value for name, value in metrics.items() if not name.startswith("time/")}


def undocumented(names):
    """The names that no table declares; `opr/threshold/Meander` belongs to `opr/threshold/<group>`."""
    known = known_metrics()
    families = tuple(name.partition("<")[0] for name in known if "<" in name)
    return sorted(name for name in set(names) - {"step"} if name not in known and not name.startswith(families))
