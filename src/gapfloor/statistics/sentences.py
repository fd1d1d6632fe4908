"""Rules for sentences about a study: each decides on the data whether a sentence may be printed.

A sentence is printed only if the tests behind it support every part of it. Two calls that differ are not evidence of
a difference, a gap on the played levels is not a gap of the generator, and a difference that is not tested is not
reported as a fact. `benchmarks/claims_simulation.py` measures how often each sentence is printed where it is false.

References:
    Berger, R. L. (1982). Multiparameter hypothesis testing and acceptance sampling. Technometrics 24, 295-300. (A
        sentence that needs two tests keeps the level if both are made at that level.)
    Gelman, A. and Stern, H. (2006). The difference between "significant" and "not significant" is not itself
        statistically significant. The American Statistician 60, 328-331.
"""

from __future__ import annotations

#: The floor's own gap is worth a sentence from this share of the runs' gap on.
FLOOR_SHARE = 0.1


def may_say_new_levels_cost(is_established: bool, *, train: str, test: str) -> bool:
    """Whether the gap may be read as what new levels cost.

    It must be established, and it must lie between two returns above chance.
    """
    return is_established and train == test == "above"


def may_say_training_levels_learnt(is_established: bool, *, train: str, test: str) -> bool:
    """Whether something was learnt about the training levels that new levels do not show.

    That training return is called above the floor and held-out return is not does not say so (Gelman and Stern): the
    gap between them must be established itself.
    """
    return is_established and train == "above" and test not in ("above", "not tested")
