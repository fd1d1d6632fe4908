"""Success as the score: `--option score=success` makes an episode's return 1 where the environment reports success.

Meta-World, Fetch and other robot tasks give a shaped reward and say in `info` whether the task is solved. Papers report
the share of episodes in which it was solved at some step, so the first such step earns 1 and everything else 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gapfloor.errors import UsageError

if TYPE_CHECKING:
    from gapfloor.engines.gymnasium.factory import Recipe

#: Names under which environments report it.
SUCCESS_NAMES = ("success", "is_success", "solved")


def wants_success(recipe: Recipe) -> bool:
    """Whether the user asked for success in place of the reward."""
    wanted = recipe.own("score")
    if wanted not in (None, "success"):
        raise UsageError(
            f"The option score is {wanted!r}: write score=success, or leave it out for the reward."
        )
    return wanted is not None


def success_name(recipe: Recipe, names: Iterable[str]) -> str:
    """The name under which `info` reports success."""
    for name in names:
        if name.removeprefix("info:") in SUCCESS_NAMES:
            return name
    raise UsageError(
        f"{recipe.game} does not report success (info has none of {', '.join(SUCCESS_NAMES)}): leave out "
        "--option score=success."
    )
