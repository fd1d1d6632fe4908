"""Which fraction of the machine's measured matrix-multiply peak the PPO update reaches.

    python benchmarks/update_peak.py [--encoder impala] [--threads 2] [--seconds 10]

The peak is torch's own float32 product of 1024 x 1024 matrices, one on every thread at once. The update's
operations are counted by torch's flop counter over one micro-batch, forward and backward; its samples per second
are those of `accumulate_gradient`, the whole of an update but for Adam. Both are interleaved and repeated.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from gapfloor.engines.procgen import N_ACTIONS, OBSERVATION_SHAPE
from gapfloor.training.agent import make_agent
from gapfloor.training.hyperparameters import Hyperparameters
from gapfloor.training.ppo import Samples, accumulate_gradient, ppo_loss
from gapfloor.training.workers import Workers, start_workers

SIZE = 1024


def measure_peak(workers: Workers, seconds: float) -> float:
    """Operations per second of matrix products on every thread."""

    def multiply(_: int) -> int:
        a, b = torch.rand(SIZE, SIZE), torch.rand(SIZE, SIZE)
        torch.mm(a, b)
        n, until = 0, time.perf_counter() + seconds
        while time.perf_counter() < until:
            torch.mm(a, b)
            n += 1
        return n

    return sum(workers.map(multiply, range(workers.threads))) * 2 * SIZE**3 / seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoder", default="impala")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--micro-batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    hyper = Hyperparameters(micro_batch=arguments.micro_batch)
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
        accumulate_gradient(agent, observations, indices, samples, hyper=hyper, workers=workers)
        for _ in range(arguments.repeats):
            peak = measure_peak(workers, arguments.seconds / 2)
            started, done = time.perf_counter(), 0
            while time.perf_counter() - started < arguments.seconds:
                accumulate_gradient(agent, observations, indices, samples, hyper=hyper, workers=workers)
                done += n
            speed = done / (time.perf_counter() - started)
            fractions.append(speed * per_sample / peak)
            print(
                f"{arguments.encoder}, {arguments.threads} threads: {speed:.0f} samples/s x "
                f"{per_sample / 1e6:.0f} MFLOP = {speed * per_sample / 1e9:.1f} GFLOP/s "
                f"of {peak / 1e9:.1f} measured: {fractions[-1]:.0%}"
            )
    print(f"median {statistics.median(fractions):.0%}")


if __name__ == "__main__":
    main()
