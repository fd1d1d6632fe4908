"""Normalised scores: between any two references, and on the scale of Cobbe et al. (2020, Appendix C) for ProcGen.

References:
    Cobbe, K., Hesse, C., Hilton, J. & Schulman, J. (2020). Leveraging procedural generation to benchmark
    reinforcement learning. International Conference on Machine Learning, Appendix C.
"""

from __future__ import annotations

from gapfloor.errors import unknown_name

#: game -> (easy R_min, easy R_max, hard R_min, hard R_max). R_min is a policy trained without observations.
_CONSTANTS: dict[str, tuple[float, float, float, float]] = {
    "bigfish": (1, 40, 0, 40),
    "bossfight": (0.5, 13, 0.5, 13),
    "caveflyer": (3.5, 12, 2, 13.4),
    "chaser": (0.5, 13, 0.5, 14.2),
    "climber": (2, 12.6, 1, 12.6),
    "coinrun": (5, 10, 5, 10),
    "dodgeball": (1.5, 19, 1.5, 19),
    "fruitbot": (-1.5, 32.4, -0.5, 27.2),
    "heist": (3.5, 10, 2, 10),
    "jumper": (3, 10, 1, 10),
    "leaper": (3, 10, 1.5, 10),
    "maze": (5, 10, 4, 10),
    "miner": (1.5, 13, 1.5, 20),
    "ninja": (3.5, 10, 2, 10),
    "plunder": (4.5, 30, 3, 30),
    "starpilot": (2.5, 64, 1.5, 35),
}

GAMES = tuple(_CONSTANTS)


def has_scale(game: str, *, mode: str) -> bool:
    """Whether the game and mode have published constants."""
    return game in _CONSTANTS and mode in ("easy", "hard")


def score_range(game: str, *, mode: str) -> tuple[float, float]:
    """R_min and R_max of a game.

    >>> score_range("starpilot", mode="easy")
    (2.5, 64)
    """
    if game not in _CONSTANTS:
        raise unknown_name("game", game, _CONSTANTS)
    if mode not in ("easy", "hard"):
        raise unknown_name("mode", mode, ("easy", "hard"))
    values = _CONSTANTS[game]
    return values[:2] if mode == "easy" else values[2:]


def between(value: float, low: float, high: float) -> float:
    """(R - low)/(high - low): 0 at `low`, 1 at `high`; NaN where the two are equal.

    >>> between(3.0, 1.0, 5.0)
    0.5
    """
    return (value - low) / (high - low) if high != low else float("nan")


def normalised_score(mean_return: float, game: str, *, mode: str) -> float:
    """(R - R_min)/(R_max - R_min).

    >>> round(normalised_score(22.89, "fruitbot", mode="easy"), 2)
    0.72
    """
    return between(mean_return, *score_range(game, mode=mode))
