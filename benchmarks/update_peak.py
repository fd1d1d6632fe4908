"""Which fraction of the machine's measured matrix-multiply peak the PPO update reaches.

    python benchmarks/update_peak.py [--encoder impala] [--threads 2] [--seconds 10] [--precision bf16]

The peak is torch's own float32 product of 1024 x 1024 matrices, one on every thread at once. The update's
operations are counted by torch's flop counter over one micro-batch, forward and backward; its samples per second
are those of `accumulate_gradient`, the whole of an update but for Adam. Both are interleaved and repeated. On a
machine with other work, read the figures per second of processor time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from gapfloor.engines.procgen import N_ACTIONS, OBSERVATION_SHAPE
from gapfloor.training.agent import make_agent
from gapfloor.training.hyperparameters import PRECISIONS, Hyperparameters
from gapfloor.training.ppo import Samples, accumulate_gradient, ppo_loss
from gapfloor.training.workers import Workers, start_workers

SIZE = 1024


@dataclass(frozen=True)
class Rate:
    """Operations per second of wall-clock time, and per second that a processor really worked for us."""

    wall: float
    cpu: float


def measure(work: Callable[[], float], seconds: float) -> Rate:
    """The rate of `work`, which returns the operations it did, repeated for that many seconds."""
    done, started, cpu = 0.0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        done += work()
    return Rate(done / (time.perf_counter() - started), done / (time.process_time() - cpu))


def multiply_matrices(workers: Workers) -> float:
    """Ten matrix products on every thread; the operations done."""

    def multiply(_: int) -> None:
        a, b = torch.ones(SIZE, SIZE), torch.ones(SIZE, SIZE)
        for _ in range(10):
            torch.mm(a, b)

    workers.map(multiply, range(workers.threads))
    return workers.threads * 10 * 2.0 * SIZE**3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoder", default="impala")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--micro-batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    arguments = parser.parse_args()
    hyper = Hyperparameters(micro_batch=arguments.micro_batch, precision=arguments.precision)
    n = hyper.batch // hyper.minibatches
    agent = make_agent(arguments.encoder, observation_shape=OBSERVATION_SHAPE, n_actions=N_ACTIONS, seed=1)
    observations = torch.randint(0, 256, (n, *OBSERVATION_SHAPE), dtype=torch.uint8)
    samples = Samples(
        torch.zeros(n, dtype=torch.int64),
        torch.full((n,), -2.7),
        torch.randn(n),
        torch.randn(n),
        torch.randn(n),
    )
    indices = torch.randperm(n)

    with FlopCounterMode(display=False) as counter:
        piece = samples.take(indices[: hyper.micro_batch])
        loss, _ = ppo_loss(*agent(observations[: hyper.micro_batch]), piece, n=n, hyper=hyper)
        torch.autograd.grad(loss, list(agent.parameters()))
    per_sample = counter.get_total_flops() / hyper.micro_batch

    fractions = []
    with start_workers(arguments.threads) as workers:

        def learn() -> float:
            accumulate_gradient(agent, observations, indices, samples, hyper=hyper, workers=workers)
            return n * per_sample

        learn()
        for _ in range(arguments.repeats):
            peak = measure(lambda: multiply_matrices(workers), arguments.seconds / 2)
            rate = measure(learn, arguments.seconds)
            fractions.append((rate.wall / peak.wall, rate.cpu / peak.cpu))
            print(
                f"{arguments.encoder}, {arguments.threads} threads: {rate.wall / per_sample:.0f} samples/s x "
                f"{per_sample / 1e6:.0f} MFLOP = {rate.wall / 1e9:.1f} of {peak.wall / 1e9:.1f} GFLOP/s "
                f"({fractions[-1][0]:.0%}); per CPU second {rate.cpu / per_sample:.0f} samples, "
                f"{rate.cpu / 1e9:.1f} of {peak.cpu / 1e9:.1f} GFLOP ({fractions[-1][1]:.0%})"
            )
    wall, cpu = (statistics.median(column) for column in zip(*fractions, strict=True))
    print(f"median {wall:.0%} by the clock, {cpu:.0%} by processor time")


if __name__ == "__main__":
    main()
