"""Evaluations during training: in turn with it, or in a process beside it that does not hold it up."""

from __future__ import annotations

import multiprocessing
import weakref
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from torch import Tensor

from optimist.config import RunConfig
from optimist.cores import be_nice
from optimist.cuda.errors import explanation
from optimist.envs.make import make_envs
from optimist.errors import OptimistError
from optimist.networks.policy import PolicyNetwork
from optimist.training.build import make_policy, prepare_torch
from optimist.training.evaluate import play, summarize
from optimist.training.seeding import derive_seed


class Evaluations:
    """Says after each update what has become known: the mean return of an evaluation, and the step it is of.

    Under `background` an evaluation plays while training goes on, and its result is read when the next one begins, or
    just before the end of the run: whatever the speed of the machine, the same numbers stand at the same place. A
    checkpoint does not wait for it either: it holds the weights, and a resumed run plays them again.
    """

    def __init__(self, config: RunConfig, policy: PolicyNetwork) -> None:
        self.config, self.policy = config, policy
        self.player: BackgroundPlayer | None = None
        self.pending: int | None = None  # step of the evaluation that is being played
        self.weights: dict[str, Tensor] = {}  # what plays it

    def prepare(self) -> None:
        """Start the process that will play, if one will: it takes seconds until it can."""
        due = 0 < self.config.evaluate_every < self.config.total_steps
        if due and self.config.evaluate_in == "background" and self.player is None:
            self.player = BackgroundPlayer(self.config)

    def after(self, step: int) -> list[dict[str, float]]:
        """To be called after each update; what it brings is oldest first. Near the end of a run it may be two."""
        batch, every = self.config.batch_size, self.config.evaluate_every
        due = bool(every) and step // every != (step - batch) // every
        left = self.config.total_updates - step // batch
        found: list[dict[str, float]] = []
        if self.pending is not None and (due or left <= 1):
            found.append({"evaluation/mean_return": self._result(), "evaluation/step": float(self.pending)})
            self.pending, self.weights = None, {}
        if due and self.config.evaluate_in == "background" and left > 1:
            self._begin(
                step, {name: tensor.detach().cpu().clone() for name, tensor in self.policy.state_dict().items()}
            )
        elif due:
            found.append({"evaluation/mean_return": self._play(step), "evaluation/step": float(step)})
        return found

    def close(self) -> None:
        """Stop playing."""
        if self.player is not None:
            self.player.close()
            self.player = None

    def state_dict(self) -> dict[str, Any]:
        """The evaluation whose result has not been told yet."""
        return {} if self.pending is None else {"step": self.pending, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`; what was being played is played again."""
        if state:
            self._begin(state["step"], state["weights"])

    def _begin(self, step: int, weights: dict[str, Tensor]) -> None:
        self.prepare()
        assert self.player is not None
        numbers = {name: tensor.numpy() for name, tensor in weights.items()}
        self.player.begin(numbers, derive_seed(self.config.seed, "evaluation", step))
        self.pending, self.weights = step, weights

    def _result(self) -> float:
        assert self.player is not None
        return self.player.result()

    def _play(self, step: int) -> float:
        return _mean_return(self.config, self.policy, derive_seed(self.config.seed, "evaluation", step))


class BackgroundPlayer:
    """A process with games and a network of its own; it ends with the process that made it."""

    def __init__(self, config: RunConfig) -> None:
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, config), daemon=True)
        self.process.start()
        self.end = weakref.finalize(self, self.process.kill)  # also if nobody closes it: it does not mind signals
        theirs.close()

    def begin(self, weights: dict[str, Any], seed: int) -> None:
        """Play with these weights; `result` has to be asked for before the next."""
        self._exchange(lambda: self.ours.send((weights, seed)))

    def result(self) -> float:
        """The mean return, once it is there."""
        answer: float | str = self._exchange(self.ours.recv)
        if isinstance(answer, str):
            raise OptimistError(f"the evaluation beside the training failed: {answer}")
        return answer

    def close(self) -> None:
        """Let go of the process, whatever it is doing."""
        self.ours.close()
        self.end()
        self.process.join()

    def _exchange(self, action: Any) -> Any:
        try:
            return action()
        except (EOFError, OSError) as error:
            self.process.join(5)
            raise OptimistError(
                f"the process that plays evaluations ended (exit code {self.process.exitcode}); "
                "resume the run, or set evaluate_in = 'turn'"
            ) from error


def _serve(connection: Connection, config: RunConfig) -> None:
    """What the background process does: weights in, mean return out, until the other end is closed."""
    import signal

    import torch

    for number in (signal.SIGINT, signal.SIGTERM):  # meant for the training, which ends this process
        signal.signal(number, signal.SIG_IGN)
    be_nice()
    if config.env.vectorization == "async":  # this process may have none of its own; the games are the same
        config = replace(config, env=replace(config.env, vectorization="sync"))
    policy, failure = None, None
    try:
        prepare_torch(config)
        envs = make_envs(replace(config.env, num_envs=1), seed=config.seed)
        policy = make_policy(config, envs)
        envs.close()
    except Exception as error:  # told when somebody asks
        failure = _told(error)
    while True:
        try:
            weights, seed = connection.recv()
        except (EOFError, ConnectionError):  # reset, where the training ended with a result it had not read
            return
        answer: float | str | None = failure
        if policy is not None:
            try:
                policy.load_state_dict({name: torch.from_numpy(np.asarray(array)) for name, array in weights.items()})
                answer = _mean_return(config, policy, seed)
            except Exception as error:  # told to the training, which stops
                answer = _told(error)
        with suppress(ConnectionError):  # the training was killed meanwhile; the next `recv` ends this process
            connection.send(answer)


def _told(error: Exception) -> str:
    return explanation(error) or f"{type(error).__name__}: {error}"


def _mean_return(config: RunConfig, policy: PolicyNetwork, seed: int) -> float:
    played = play(policy, config.env, config.evaluate_episodes, greedy=False, seed=seed, task_seed=config.seed)
    return float(summarize(played)["mean_return"])
