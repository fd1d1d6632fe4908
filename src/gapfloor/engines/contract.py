"""The engine contract as checks on anyone's environment (`gapfloor doctor`).

A floor, a rule and a call depend on a few promises: a seed is a level, an episode is a function of its level and
its actions, whatever was played before and in whichever process, and episodes end. Each promise is tried by
play on a handful of levels, and the result is reported in words.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Literal

from gapfloor.engines import contract_promises as promises
from gapfloor.engines.contract_results import Clause, Contract
from gapfloor.engines.engine import Engine, EngineSpec, Option
from gapfloor.engines.families import family_of
from gapfloor.engines.registry import engine_from_spec, make_spec
from gapfloor.errors import GapfloorError, MissingExtraError, UnknownEnvironmentError

#: Seeds of both of the usual level sets, and the last one there is; the first ones are always tried.
LEVELS = (0, 2**31 - 2, 1000, 199, 1, 2, 3, 5, 8, 13, 150, 1001, 1050, 1099)

SPACES = "actions and observations of a fixed form"

#: How many of them are tried where making a level is slow, and what counts as slow (seconds of CPU per level).
FEW_LEVELS, SLOW_SECONDS = 4, 0.2


def check_contract(game: str, *, options: Mapping[str, Option] | None = None) -> Contract:
    """Try every part of the contract on one environment; an environment that cannot be made fails the first."""
    try:
        spec = make_spec(game, options=options)
        engine = engine_from_spec(spec, slots=1, levels=promises.ANY_LEVELS)
    except (MissingExtraError, UnknownEnvironmentError):
        raise
    except GapfloorError as error:
        return Contract(game, "", (Clause(SPACES, "BROKEN", str(error)),))
    clauses = [
        _spaces(engine),
        *_seed(spec),
        *_masks(engine),
        _noop(engine),
        *_autoreset(engine),
        _frames(engine),
    ]
    if engine.can_begin:
        try:
            clauses += _try_promises(spec, engine)
        except GapfloorError as error:
            clauses.append(Clause("the checks run to their end", "BROKEN", str(error)))
    else:
        words = "levels come in the order in which the engine draws them: an episode cannot be begun on a given level"
        clauses.append(Clause("a level can be begun", "note", words, is_needed=False))
    engine.close()
    return Contract(game, f"{spec.engine} {spec.version}", tuple(clauses))


def _try_promises(spec: EngineSpec, fresh: Engine) -> list[Clause]:
    """The parts that are tried by play; what a fresh engine plays is the standard for all the others."""
    started = time.process_time()
    promises.first_observation(fresh, LEVELS[0])
    levels = LEVELS[:FEW_LEVELS] if time.process_time() - started > SLOW_SECONDS else LEVELS
    known = promises.plays_of(fresh, levels)
    again = promises.plays_after_others(spec, levels)
    return [
        promises.follows_draw(spec),
        promises.same_level(known, again),
        promises.other_levels(known),
        promises.survives_history(known, again),
        promises.plays_on(spec),
        promises.fresh_process(spec, known),
        promises.global_state(fresh, levels[:FEW_LEVELS]),
        promises.episodes_end(spec),
        promises.cloning(spec, levels[:FEW_LEVELS]),
    ]


def _spaces(engine: Engine) -> Clause:
    description = getattr(engine, "description", None)
    seen = description.layout.describe() if description else f"uint8 {engine.observation_shape}"
    if engine.n_actions:
        names = ", ".join(engine.action_names[:8]) + (", ..." if engine.n_actions > 8 else "")
        actions = f"{engine.n_actions} actions ({names})"
    else:
        actions = str(engine.action_space)
    words = f"{actions}; observation {seen}"
    return Clause(SPACES, "holds", words)


def _seed(spec: EngineSpec) -> list[Clause]:
    family = family_of(spec)
    if family is None:
        return []
    mark: Literal["holds", "note"] = "holds" if "level" in family.seed else "note"
    return [
        Clause("what a seed decides", mark, f"{family.seed} ({family.name}: {family.words})", is_needed=False)
    ]


def _noop(engine: Engine) -> Clause:
    description = getattr(engine, "description", None)
    words = description.noop_words if description else f"action {engine.noop}"
    is_known = "not named" not in words
    return Clause("an action that does nothing", "holds" if is_known else "note", words, is_needed=False)


def _masks(engine: Engine) -> list[Clause]:
    description = getattr(engine, "description", None)
    if description is None or not description.offers_masks:
        return []
    if description.masks:
        words = "the environment says which actions are legal, and only those are played"
    else:
        words = "the environment says which actions are legal: play only those with --option masks=true"
    return [Clause("legal actions", "holds" if description.masks else "note", words, is_needed=False)]


def _autoreset(engine: Engine) -> list[Clause]:
    description = getattr(engine, "description", None)
    if description is None:
        return []
    if not description.is_vector:
        words = "single environments, which gapfloor resets itself"
    else:
        mode = description.autoreset or "no declared mode"
        words = f"a vector environment with {mode}; gapfloor puts each environment at its next level itself"
    return [Clause("autoreset", "holds", words, is_needed=False)]


def _frames(engine: Engine) -> Clause:
    engine.observe()
    frame = engine.frame(0)
    name = "frames for replay"
    if frame is None:
        words = "nothing to draw: neither render_mode rgb_array nor an image as observation"
        return Clause(name, "note", words, is_needed=False)
    return Clause(name, "holds", f"{frame.shape[0]}x{frame.shape[1]} pixels", is_needed=False)
