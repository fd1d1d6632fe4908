"""ProcGen: the real C++ engine, one process, no engine threads, from the wheel that this Python has.

The C++ code ends the process on invalid arguments, so everything is checked here first. Processes without engine
threads are the fastest layout on CPUs; the workers provide the parallelism.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Discrete
from gapfloor.engines.catalogue import MIRROR, PROCGEN
from gapfloor.engines.engine import EngineSpec, Option, Step
from gapfloor.engines.picture_files import is_shown
from gapfloor.engines.procgen_state import without_view
from gapfloor.errors import UsageError, unknown_name
from gapfloor.levels import LevelSet
from gapfloor.levels.draws import check_draw

GAMES = (
    "bigfish", "bossfight", "caveflyer", "chaser", "climber", "coinrun", "dodgeball", "fruitbot",
    "heist", "jumper", "leaper", "maze", "miner", "ninja", "plunder", "starpilot",
)  # fmt: skip

#: The eight games of the paper, in its order; `paper` on the command line means these.
PAPER_GAMES = (
    "starpilot", "fruitbot", "bigfish", "coinrun", "miner", "dodgeball", "bossfight", "heist",
)  # fmt: skip

#: Modes that only some games have; the engine ends the process when asked for another. The mode exploration is left
#: out: it is hard mode on one level, so it has no gap.
MODE_GAMES: Mapping[str, tuple[str, ...]] = {
    "easy": GAMES,
    "hard": GAMES,
    "extreme": ("chaser", "dodgeball", "leaper", "starpilot"),
    "memory": ("caveflyer", "dodgeball", "heist", "jumper", "maze", "miner"),
}

#: Visual options and their defaults in the engine.
OPTIONS: Mapping[str, bool] = {
    "center_agent": True,
    "use_backgrounds": True,
    "use_monochrome_assets": False,
    "restrict_themes": False,
    "use_generated_assets": False,
    "paint_vel_info": False,
}

N_ACTIONS = 15
NOOP = 4
ACTION_NAMES = (
    "LEFT+DOWN", "LEFT", "LEFT+UP", "DOWN", "no-op", "UP", "RIGHT+DOWN", "RIGHT", "RIGHT+UP",
    "D", "A", "W", "S", "Q", "E",
)  # fmt: skip
OBSERVATION_SHAPE = (64, 64, 3)


def check_game(game: str) -> None:
    """Refuse a name that is not a game, with the nearest names."""
    if re.fullmatch(r"[\w/.-]+-v\d+", game):  # the form of Gymnasium's names
        raise UsageError(f"Unknown game '{game}': did you mean gym:{game}, the environment of Gymnasium?")
    if game not in GAMES:
        raise unknown_name("game", game, GAMES)


def make_spec(
    game: str, *, mode: str | None = None, options: Mapping[str, Option] | None = None
) -> EngineSpec:
    """The checked recipe of a ProcGen engine."""
    mode = mode or "easy"
    changed = checked_options(game, mode=mode, options=options)
    return EngineSpec(PROCGEN.name, wheel_version(), game, mode, changed)


def checked_options(
    game: str, *, mode: str, options: Mapping[str, Option] | None
) -> tuple[tuple[str, Option], ...]:
    """The options of a recipe whose game, mode and options exist; those that equal the default are left out."""
    check_game(game)
    if mode not in MODE_GAMES:
        raise unknown_name("mode", mode, MODE_GAMES)
    if game not in MODE_GAMES[mode]:
        raise UsageError(f"{game} has no {mode} mode: it exists for {', '.join(MODE_GAMES[mode])}.")
    for name, value in (options or {}).items():
        if name not in OPTIONS:
            raise unknown_name("option", name, OPTIONS)
        if not isinstance(value, bool):
            raise UsageError(f"The option {name} is {value!r}: it must be true or false.")
    changed = {name: value for name, value in (options or {}).items() if value != OPTIONS[name]}
    return tuple(sorted(changed.items()))


@functools.cache
def wheel_version() -> str:
    """The installed build of the engine: a version of procgen-mirror, or `procgen-gym` with its version.

    The two builds draw some frames differently, so their cells must not share a version.
    """
    version = PROCGEN.installed_version()
    return version if PROCGEN.package == MIRROR else f"{PROCGEN.package} {version}"


def _build() -> Any:
    """Two classes of the installed wheel: a batch of slots, and the starts of levels."""
    from gapfloor.engines import procgen_builds as builds

    if PROCGEN.package == MIRROR:
        return builds.MirrorBatch, builds.MirrorLevelStarts
    return builds.GymBatch, builds.GymLevelStarts


def _settings(spec: EngineSpec, *, levels: LevelSet, draw: int) -> dict[str, Any]:
    wheel_version()
    return {
        "env_name": spec.game,
        "distribution_mode": spec.mode,
        "num_levels": 0 if levels.is_everything else levels.n,
        "start_level": 0 if levels.is_everything else levels.start,
        "rand_seed": draw,
        **dict(spec.options),
    }


@functools.lru_cache(maxsize=4096)  # about 150 MB of states; only the whole distribution gets there
def _initial_state(spec: EngineSpec, level_seed: int) -> bytes:
    """The state in which a level starts, from a fresh engine: in dodgeball a slot remembers what it played before."""
    state: bytes = _level_starts(spec).state(level_seed)
    return state


@functools.lru_cache(maxsize=4)
def _level_starts(spec: EngineSpec) -> Any:
    return _build()[1](**_settings(spec, levels=LevelSet(0, 1), draw=0))


class ProcgenEngine:
    """A batch of ProcGen slots; see `gapfloor.engines.engine.Engine` for what each method promises."""

    can_clone = True
    action_space = Discrete(N_ACTIONS)
    n_actions = N_ACTIONS
    masks = None
    noop = NOOP
    action_names: tuple[str, ...] = ACTION_NAMES
    observation_shape: tuple[int, ...] = OBSERVATION_SHAPE

    def __init__(
        self,
        game: str,
        *,
        slots: int,
        levels: LevelSet,
        draw: int = 0,
        mode: str = "easy",
        options: Mapping[str, Option] | None = None,
    ) -> None:
        self.spec = make_spec(game, mode=mode, options=options)
        check_draw(draw)
        if slots < 1:
            raise UsageError(f"An engine needs at least 1 slot, not {slots}.")
        self.n_slots = slots
        self._batch = _build()[0](slots, **_settings(self.spec, levels=levels, draw=draw))
        # The engine writes into these arrays itself; copying them every step would cost a tenth of a floor.
        self._actions = self._batch.actions
        # Where pictures are blank nobody may look: an array without rows makes whoever does fail.
        self._observations = self._batch.observations[: slots if is_shown(game) else 0]
        self._rewards, self._firsts = self._batch.rewards, self._batch.firsts
        self._levels = self._batch.levels
        self._act = self._batch.act
        self._batch.observe()

    @property
    def level_seeds(self) -> npt.NDArray[np.int32]:
        levels: npt.NDArray[np.int32] = self._levels
        return levels

    def observe(self) -> Step:
        return self._observations, self._rewards, self._firsts

    def step(self, actions: npt.NDArray[np.integer[Any]]) -> Step:
        self._actions[:] = actions
        self._act()
        return self._observations, self._rewards, self._firsts

    def save(self, slot: int) -> bytes:
        state: bytes = self._batch.save(slot)
        return state

    def load(self, slot: int, state: bytes) -> None:
        self._batch.load(slot, state)

    def begin(self, slot: int, level_seed: int) -> None:
        self.load(slot, self.initial_state(level_seed))

    def frame(self, slot: int) -> npt.NDArray[np.uint8]:
        frame: npt.NDArray[np.uint8] = self._observations[slot].copy()
        return frame

    def initial_state(self, level_seed: int) -> bytes:
        """The state in which a level starts."""
        return _initial_state(self.spec, level_seed)

    def close(self) -> None:
        self._batch.close()


class UnseenProcgen(ProcgenEngine):
    """The same game with pictures that are cheap to draw, for play that nobody looks at; observations have no rows.

    ProcGen draws a frame at every step, which is most of its work, and a reference such as the uniform floor never
    looks at one. Without backgrounds, with plain colours in place of sprites and with a view into which no cell falls,
    a step takes down to a quarter of the time. Nothing of this touches what happens in a game: the engine reads the
    width of the view only when it draws. `tests/engines/test_unseen.py` compares levels, rewards and ends of episodes.

    Rows of `make bench`: "floor starpilot, steady" and "floor heist, steady".
    """

    def __init__(self, spec: EngineSpec, *, slots: int, levels: LevelSet) -> None:
        plain = {"use_backgrounds": False, "use_monochrome_assets": True}
        super().__init__(spec.game, slots=slots, levels=levels, mode=spec.mode, options=plain)
        self._observations = self._observations[:0]

    def begin(self, slot: int, level_seed: int) -> None:
        self.load(slot, without_view(self.initial_state(level_seed)))


def check_version(spec: EngineSpec) -> None:
    """Refuse a specification made with another version of the wheel."""
    if spec.version != wheel_version():
        raise UsageError(
            f"This was made with ProcGen's build {spec.version} and {wheel_version()} is installed: use the Python and "
            f"the wheel that it was made with ({MIRROR} for a bare version)."
        )


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> ProcgenEngine:
    """A running engine of `spec`; refuses a specification made with another version of the wheel."""
    check_version(spec)
    return ProcgenEngine(
        spec.game, slots=slots, levels=levels, draw=draw, mode=spec.mode, options=dict(spec.options)
    )
