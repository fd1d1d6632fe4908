"""Normalised scores: between any two references, and on the scale of Cobbe et al. (2020, Appendix C) for ProcGen.

References:
    Cobbe, K., Hesse, C., Hilton, J. & Schulman, J. (2020). Leveraging procedural generation to benchmark
    reinforcement learning. International Conference on Machine Learning, Appendix C.
"""

from __future__ import annotations

from gapfloor.statistics.conventions import NAN, Pair

#: Mode -> game -> R_min and R_max. R_min is a policy trained without observations.
_PUBLISHED: dict[str, dict[str, Pair]] = {
    "easy": {
        "bigfish": (1, 40), "bossfight": (0.5, 13), "caveflyer": (3.5, 12), "chaser": (0.5, 13), "climber": (2, 12.6),
        "coinrun": (5, 10), "dodgeball": (1.5, 19), "fruitbot": (-1.5, 32.4), "heist": (3.5, 10), "jumper": (3, 10),
        "leaper": (3, 10), "maze": (5, 10), "miner": (1.5, 13), "ninja": (3.5, 10), "plunder": (4.5, 30),
        "starpilot": (2.5, 64),
    },
    "hard": {
        "bigfish": (0, 40), "bossfight": (0.5, 13), "caveflyer": (2, 13.4), "chaser": (0.5, 14.2), "climber": (1, 12.6),
        "coinrun": (5, 10), "dodgeball": (1.5, 19), "fruitbot": (-0.5, 27.2), "heist": (2, 10), "jumper": (1, 10),
        "leaper": (1.5, 10), "maze": (4, 10), "miner": (1.5, 20), "ninja": (2, 10), "plunder": (3, 30),
        "starpilot": (1.5, 35),
    },
}  # fmt: skip


def published_scale(game: str, mode: str) -> Pair | None:
    """The published R_min and R_max of a game; None where there are none.

    >>> published_scale("starpilot", "easy"), published_scale("chess", "easy")
    ((2.5, 64), None)
    """
    return _PUBLISHED.get(mode, {}).get(game)


def between(value: float, low: float, high: float) -> float:
    """(R - low)/(high - low): 0 at `low`, 1 at `high`; NaN where the two are equal.

    >>> between(3.0, 1.0, 5.0)
    0.5
    """
    return (value - low) / (high - low) if high != low else NAN
