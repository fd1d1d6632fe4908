"""The engine contract as checks on anyone's environment (`gapfloor doctor`).

A floor, a rule and a call depend on a few promises: a seed is a level, an episode is a function of its level and
its actions, whatever was played before and in whichever process, and episodes end. Each promise is tried by
play on a handful of levels (`gapfloor.engines.contract_promises`), and the result is reported in words.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gapfloor.engines import contract_promises as promises
from gapfloor.engines.contract_promises import Clause
from gapfloor.engines.engine import Engine, EngineSpec, Option
from gapfloor.engines.level_play import first_observation
from gapfloor.engines.registry import engine_from_spec, make_spec
from gapfloor.errors import GapfloorError, MissingExtraError, UnknownEnvironmentError
from gapfloor.tables.readable import ReportResult

#: Seeds of both of the usual level sets, and the last one there is; the first ones are always tried.
LEVELS = (0, 2**31 - 2, 1000, 199, 1, 2, 3, 5, 8, 13, 150, 1001, 1050, 1099)

SPACES = "actions and observations of a fixed form"

#: How many of them are tried where making a level is slow, and what counts as slow (seconds of CPU per level).
FEW_LEVELS, SLOW_SECONDS = 4, 0.2


@dataclass(frozen=True, repr=False)
class Contract(ReportResult):
    """What was found about one environment."""

    row_names = ("clauses",)

    game: str
    """The game, or the environment's name."""
    version: str
    """The engine and its version; empty where the environment could not be made."""
    clauses: tuple[Clause, ...]
    """One entry per part of the contract."""

    @property
    def failures(self) -> tuple[Clause, ...]:
        """Needed parts that do not hold."""
        return tuple(clause for clause in self.clauses if clause.is_failure)

    @property
    def failure(self) -> str:  # type: ignore[override]
        """Which needed parts do not hold; empty where all do."""
        if not self.failures:
            return ""
        names = "; ".join(clause.name for clause in self.failures)
        return (
            f"{self.game} does not keep the engine contract ({names}), so its gaps would not be measurements."
        )

    def to_dict(self) -> dict[str, Any]:
        """The findings as JSON values."""
        clauses = [{**asdict(clause), "is_failure": clause.is_failure} for clause in self.clauses]
        return {"game": self.game, "version": self.version, "holds": not self.failures, "clauses": clauses}

    def __repr__(self) -> str:
        lines = [f"{self.game}" + (f" ({self.version})" if self.version else "")]
        lines += [f"{clause.mark:7} {clause.name}: {clause.words}" for clause in self.clauses]
        return "\n".join(
            lines if self.failures else [*lines, f"The contract holds: gapfloor floor {self.game}"]
        )


def check_contract(game: str, *, options: Mapping[str, Option] | None = None) -> Contract:
    """Try every part of the contract on one environment; an environment that cannot be made fails the first."""
    try:
        spec = make_spec(game, options=options)
        engine = engine_from_spec(spec, slots=1, levels=promises.ANY_LEVELS)
    except (MissingExtraError, UnknownEnvironmentError):
        raise
    except GapfloorError as error:
        return Contract(game, "", (Clause(SPACES, "BROKEN", str(error)),))
    clauses = _described(spec, engine)
    try:
        clauses += _try_promises(spec, engine)
    except GapfloorError as error:
        clauses.append(Clause("the checks run to their end", "BROKEN", str(error)))
    engine.close()
    return Contract(game, f"{spec.engine} {spec.version}", tuple(clauses))


def _try_promises(spec: EngineSpec, fresh: Engine) -> list[Clause]:
    """The parts that are tried by play; what a fresh engine plays is the standard for all the others."""
    started = time.process_time()
    first_observation(fresh, LEVELS[0])
    levels = LEVELS[:FEW_LEVELS] if time.process_time() - started > SLOW_SECONDS else LEVELS
    known = promises.plays_of(fresh, levels)
    again = promises.plays_after_others(spec, levels)
    return [
        promises.follows_draw(spec),
        promises.same_level(known, again),
        promises.other_levels(known),
        promises.survives_history(known, again),
        promises.fresh_process(spec, known),
        promises.global_state(fresh, levels[:FEW_LEVELS]),
        promises.episodes_end(spec),
        promises.cloning(spec, levels[:FEW_LEVELS]),
    ]


def _described(spec: EngineSpec, engine: Engine) -> list[Clause]:
    """What the environment says about itself: spaces, seed, masks, no-op and frames."""
    found = getattr(engine, "description", None)
    seen = found.layout.describe() if found else f"uint8 {engine.observation_shape}"
    actions = str(engine.action_space)
    if engine.n_actions:
        names = ", ".join(engine.action_names[:8]) + (", ..." if engine.n_actions > 8 else "")
        actions = f"{engine.n_actions} actions ({names})"
    clauses = [Clause(SPACES, "holds", f"{actions}; observation {seen}")]

    def add(name: str, is_good: bool, words: str) -> None:
        mark: Literal["holds", "note"] = "holds" if is_good else "note"
        clauses.append(Clause(name, mark, words, is_needed=False))

    if found is not None and found.offers_masks:
        rest = "and only those are played" if found.masks else "play only those with --option masks=true"
        add("legal actions", bool(found.masks), f"the environment says which actions are legal: {rest}")
    noop = found.noop_words if found else f"action {engine.noop}"
    add("an action that does nothing", "not named" not in noop, noop)
    engine.observe()
    frame = engine.frame(0)
    nothing = "nothing to draw: neither render_mode rgb_array nor an image as observation"
    words = nothing if frame is None else f"{frame.shape[0]}x{frame.shape[1]} pixels"
    add("frames for replay", frame is not None, words)
    return clauses
