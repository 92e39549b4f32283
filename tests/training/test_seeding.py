"""Seeds derived from a run's seed."""

import itertools

from optimist.training.seeding import derive_seed


def test_every_stream_and_index_has_its_own_seed():
    streams = ["network", "acting", "shuffle", "opr", "sil", "envs", "evaluation", "final", "my-anchor"]
    seeds = [derive_seed(s, stream, i) for s, stream, i in itertools.product(range(20), streams, range(20))]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_seeds_never_change():
    # a change here changes every run: published numbers could not be repeated
    assert [derive_seed(0, "network"), derive_seed(0, "envs", 3), derive_seed(7, "opr")] == [
        1_378_135_691,
        1_080_989_653,
        56_742_395,
    ]
