"""Search for settings of PPO with OPR on DeepSea with Optuna: each trial is the mean return of a few seeds.

python examples/tune_with_optuna.py [--trials 30] [--seeds 3] [--size 10] [--steps 50000] [--out tune]

The study is stored in OUT/study.db: the same command adds trials to it. Run folders are OUT/trial-N/seed-N.
The best of many trials is a maximum and biased upwards: train its settings again with new seeds before comparing.
"""

import argparse
import statistics
from pathlib import Path

import optuna

import optimist

parser = argparse.ArgumentParser()
parser.add_argument("--trials", type=int, default=30)
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--size", type=int, default=10)
parser.add_argument("--steps", type=int, default=50_000)
parser.add_argument("--out", type=Path, default=Path("tune"))
args = parser.parse_args()


def objective(trial: optuna.Trial) -> float:
    """Train the suggested settings with every seed, and return the mean of their last 100 training episodes."""
    settings = {
        "algorithm": {"learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)},
        "opr": {"percentile": trial.suggest_float("percentile", 50.0, 95.0)},
        "network": {"activation": trial.suggest_categorical("activation", ["tanh", "relu"])},
    }
    returns = []
    for seed in range(args.seeds):
        summary = optimist.train(
            "deepsea/opr",
            size=args.size,
            seed=seed,
            total_steps=args.steps,
            tensorboard=False,
            out=args.out / f"trial-{trial.number}" / f"seed-{seed}",
            progress=False,
            **settings,
        )
        returns.append(summary["last_100_return"])
        trial.report(statistics.fmean(returns), step=seed)
        if trial.should_prune():  # below the median of earlier trials with as many seeds
            raise optuna.TrialPruned
    return statistics.fmean(returns)


args.out.mkdir(parents=True, exist_ok=True)
study = optuna.create_study(
    study_name="deepsea-opr",
    storage=f"sqlite:///{args.out / 'study.db'}",
    load_if_exists=True,
    direction="maximize",
    sampler=optuna.samplers.TPESampler(seed=0),
    pruner=optuna.pruners.MedianPruner(),
)
study.optimize(objective, n_trials=args.trials)
best = study.best_trial
print(f"best of {len(study.trials)} trials: trial {best.number}, mean return {best.value:.4f} with {best.params}")
