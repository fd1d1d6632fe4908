"""The floor: what a policy that knows nothing returns on given level draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gapfloor.analysis.evaluation import FloorMeasurement, reference_rows
from gapfloor.api.progress import showing
from gapfloor.engines.engine import Option
from gapfloor.engines.registry import check_seed
from gapfloor.play.campaign import Request, plan_campaign
from gapfloor.play.protocol import Levels, make_protocol
from gapfloor.play.references import check_references
from gapfloor.play.workers import CellWorkers, Progress
from gapfloor.records.temporary_store import open_store


def measure_floor(
    games: str | Sequence[str],
    *,
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    train: Levels = "0:200",
    test: Levels = "1000:1100",
    draws: int | Sequence[int] = (0, 1, 2),
    episodes: int = 128,
    slots: int = 16,
    burn_in: int = 1,
    design: str = "draws",
    repeats: int = 1,
    reference: str | Sequence[str] = "uniform",
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress | bool | None = None,
) -> FloorMeasurement:
    """The return of policies that know nothing, for each game and level set, with its standard error.

    The uniform reference is the floor: what random play returns on the same levels. What the store already holds
    under the same specification is read, not played again.

    Args:
        games: One or more games: a name of ProcGen, `gym:ID`, `package.module:make`, or the groups `paper` and `all`.
        mode: The engine's mode: ProcGen's easy (default), hard, extreme, memory or exploration.
        options: Options of the engine, e.g. `{"use_backgrounds": False}`.
        train: Training levels: START:STOP, a `range`, all or none.
        test: Held-out levels, in the same form as `train`.
        draws: Seeds of the level draws.
        episodes: Counted episodes per draw.
        slots: Parallel environments per draw.
        burn_in: First episodes of a slot that are not counted.
        design: Seeded draws of levels (`draws`, as in the paper), or every level equally often (`census`).
        repeats: Episodes per level in a census.
        reference: One reference or several: uniform, best-constant, constant:A, sticky:P,
            random-weights:ENCODER:COUNT, blind:RUN, upper:POLICY.
        workers: Number of worker processes; None: one per core.
        store: The folder that keeps the cells; None: they are forgotten.
        progress: What hears of episodes and cells. None: a bar on a terminal, a line in a notebook; False: nothing.

    Returns:
        A row per game, level set and reference.

    Examples:
        >>> import gapfloor
        >>> floor = gapfloor.measure_floor("starpilot", draws=0, episodes=32, progress=False)
        >>> floor
        game       mode  level set  levels     reference  mean  SEM   episodes
        ----------------------------------------------------------------------
        starpilot  easy  train      0:200      uniform    1.72  0.34  32
        starpilot  easy  test       1000:1100  uniform    1.62  0.36  32
        >>> floor.to_arrow().column_names[:4]
        ['game', 'mode', 'budget', 'agent']
    """
    named = [games] if isinstance(games, str) else list(games)
    protocol = make_protocol(
        named, mode=mode, options=options, train=train, test=test, draws=draws, episodes=episodes, slots=slots,
        burn_in=burn_in, design=design, repeats=repeats,
    )  # fmt: skip
    chosen = [reference] if isinstance(reference, str) else list(reference)
    check_references(chosen)
    for engine in protocol.engines:
        check_seed(engine)
    requests = [
        Request(engine=engine, protocol=protocol, references=tuple(chosen)) for engine in protocol.engines
    ]
    with open_store(store) as opened:
        campaign = plan_campaign(requests, opened)
        with showing(progress) as shown:
            campaign.play(CellWorkers(workers, shown))
        rows = reference_rows(
            cells=campaign.stored_cells(campaign.reference_cells),
            deterministic_rules=campaign.deterministic_rules,
        )
        return FloorMeasurement(tuple(rows), design=str(protocol.design), redone=campaign.damaged)
