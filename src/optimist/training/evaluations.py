"""Evaluations during training: in turn with it, or in a background process."""

from __future__ import annotations

import multiprocessing
import signal
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from optimist.config import RunConfig
from optimist.cores import be_nice
from optimist.cuda.device import gpu_error_message
from optimist.envs.make import make_envs
from optimist.errors import OptimistError
from optimist.networks.policy import PolicyNetwork
from optimist.training.build import make_policy, prepare_torch
from optimist.training.evaluate import play, summarize
from optimist.training.seeding import derive_seed

Result = TypeVar("Result")
METRICS = {
    "evaluation/step": ("steps", "the step whose policy is evaluated"),
    "evaluation/mean_return": ("reward", "mean raw return of the evaluation episodes during training, sampled actions"),
}
"""Metric → unit and meaning."""


class Evaluations:
    """Mean returns of evaluations, each with the step of its policy.

    Under `background` an evaluation runs while training continues; its result is read when the next one starts, or
    just before the end of the run, so that the log does not depend on the speed of the machine. A checkpoint stores
    the weights of a pending evaluation, and a resumed run repeats it.
    """

    def __init__(self, config: RunConfig, policy: PolicyNetwork) -> None:
        self.config, self.policy = config, policy
        self.worker: EvaluationWorker | None = None
        self.pending: int | None = None  # step of the evaluation in progress
        self.weights: dict[str, Tensor] = {}  # of its policy

    def start(self) -> None:
        """Start the background process if the run needs one: it takes seconds."""
        needed = 0 < self.config.evaluate_every < self.config.total_steps
        if needed and self.config.evaluate_in == "background" and self.worker is None:
            self.worker = EvaluationWorker(self.config)

    def after(self, step: int, due: bool, updates_left: int) -> list[dict[str, float]]:
        """Results that arrive after the update that ended at `step`, oldest first: at most two."""
        found: list[dict[str, float]] = []
        if self.pending is not None and (due or updates_left <= 1):
            assert self.worker is not None
            found.append(_result(self.worker.result(), self.pending))
            self.pending, self.weights = None, {}
        if due and self.config.evaluate_in == "background" and updates_left > 1:
            self._send(step, {name: tensor.detach().cpu().clone() for name, tensor in self.policy.state_dict().items()})
        elif due:
            seed = derive_seed(self.config.seed, "evaluation", step)
            found.append(_result(_mean_return(self.config, self.policy, seed), step))
        return found

    def close(self) -> None:
        """Stop the background process."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def state_dict(self) -> dict[str, Any]:
        """The pending evaluation."""
        return {} if self.pending is None else {"step": self.pending, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the result of `state_dict` and repeat the pending evaluation."""
        if state:
            self._send(state["step"], state["weights"])

    def _send(self, step: int, weights: dict[str, Tensor]) -> None:
        self.start()
        assert self.worker is not None
        arrays = {name: tensor.numpy() for name, tensor in weights.items()}
        self.worker.send(arrays, derive_seed(self.config.seed, "evaluation", step))
        self.pending, self.weights = step, weights


class EvaluationWorker:
    """A process with its own environments and network; it exits with the process that started it."""

    def __init__(self, config: RunConfig) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, config), daemon=True)
        self.process.start()
        self.kill = weakref.finalize(self, self.process.kill)  # also without `close`: the worker ignores signals
        theirs.close()

    def send(self, weights: dict[str, Any], seed: int) -> None:
        """Start an evaluation of these weights; read its `result` before the next one."""
        self._exchange(lambda: self.connection.send((weights, seed)))

    def result(self) -> float:
        """Wait for the mean return."""
        answer: float | str = self._exchange(self.connection.recv)
        if isinstance(answer, str):
            raise OptimistError(f"the background evaluation failed: {answer}")
        return answer

    def close(self) -> None:
        """Kill the process, whether or not it is busy."""
        self.connection.close()
        self.kill()
        self.process.join()

    def _exchange(self, action: Callable[[], Result]) -> Result:
        try:
            return action()
        except (EOFError, OSError) as error:
            self.process.join(5)
            raise OptimistError(
                f"the evaluation process exited unexpectedly (exit code {self.process.exitcode}); "
                "resume the run, or set evaluate_in = 'turn'"
            ) from error


def _serve(connection: Connection, config: RunConfig) -> None:
    """The worker's loop: receive weights, send the mean return, until the connection is closed."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the trainer handles them and stops this process
        signal.signal(number, signal.SIG_IGN)
    be_nice()
    if config.env.vectorization == "async":  # a daemon may have no child processes; results are the same
        config = replace(config, env=replace(config.env, vectorization="sync"))
    policy, failure = None, None
    try:
        prepare_torch(config)
        envs = make_envs(replace(config.env, num_envs=1), seed=config.seed)
        policy = make_policy(config, envs)
        envs.close()
    except Exception as error:  # sent as the first result
        failure = _one_line(error)
    while True:
        try:
            weights, seed = connection.recv()
        except (EOFError, ConnectionError):  # reset, if the trainer exited with an unread result
            return
        answer: float | str | None = failure
        if policy is not None:
            try:
                policy.load_state_dict({name: torch.from_numpy(np.asarray(array)) for name, array in weights.items()})
                answer = _mean_return(config, policy, seed)
            except Exception as error:  # the trainer raises it
                answer = _one_line(error)
        with suppress(ConnectionError):  # the trainer was killed; the next `recv` ends this process
            connection.send(answer)


def _one_line(error: Exception) -> str:
    return gpu_error_message(error) or f"{type(error).__name__}: {error}"


def _result(mean_return: float, step: int) -> dict[str, float]:
    return {"evaluation/mean_return": mean_return, "evaluation/step": float(step)}


def _mean_return(config: RunConfig, policy: PolicyNetwork, seed: int) -> float:
    played = play(policy, config.env, config.evaluate_episodes, greedy=False, seed=seed, task_seed=config.seed)
    return float(summarize(played)["mean_return"])
