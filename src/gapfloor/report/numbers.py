r"""Numbers that a text can cite: every result under a key, printed in the paper's format.

Keys are made by rule, for whatever games, budgets, rules and agents there are (docs/report.md lists the grammar):
`miner.8M.s.test`, `d.heist.8M.s.test.lo`, `gap.starpilot.25M.s.u`, ... `numbers.tex` defines `\N{key}`; a key
without data stops LaTeX with an error that names it. A key that ends in `.u` prints without the plus.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from gapfloor.analysis.row import Quantity
from gapfloor.json_values import jsonable
from gapfloor.report.cka_input import CkaRecord
from gapfloor.report.escape import key_part
from gapfloor.report.findings import (
    ALL_OR_NOTHING,
    FLOOR,
    MERGED,
    SUITE,
    TEST,
    TRAIN,
    Env,
    Findings,
    rule_letter,
)
from gapfloor.report.formats import (
    Cell,
    call_words,
    count_word,
    fixed,
    integer,
    is_number,
    p_value,
    percent_number,
)
from gapfloor.report.numbers_cka import cka_numbers

_QUANTITIES: tuple[Quantity, ...] = ("train", "test", "gap")
_SETS = (TRAIN, TEST)


@dataclass(frozen=True)
class Number:
    """One citable number."""

    key: str
    cell: Cell
    n: int | None = None
    status: str = ""

    @property
    def tex(self) -> str:
        """What the macro prints, in text and in math alike."""
        body = self.cell.tex
        if body.startswith("$") and body.endswith("$"):
            return rf"\ensuremath{{{body[1:-1]}}}"
        return body


def build_numbers(findings: Findings, cka: tuple[CkaRecord, ...] = ()) -> dict[str, Number]:
    """Every number of these results by key; the first maker of a key keeps it."""
    numbers: dict[str, Number] = {}
    makers = (
        _returns, _floors, _deltas, _gaps, _pairs, _agents, _differences, _screens, _counts, _merged, _scores,
    )  # fmt: skip
    for maker in makers:
        for number in maker(findings):
            if number.cell.raw and _exists(number.cell):
                numbers.setdefault(number.key, number)
    for key, cell in cka_numbers(findings, cka):
        if _exists(cell):
            numbers.setdefault(key, Number(key, cell))
    return numbers


def to_tex(numbers: dict[str, Number]) -> str:
    r"""The file that defines `\N`."""
    lines = [
        "% Numbers by key: \\N{miner.8M.s.test}. Made by gapfloor report; do not edit.",
        r"\makeatletter",
        r"\DeclareRobustCommand{\N}[1]{\ifcsname gapfloor@#1\endcsname\csname gapfloor@#1\endcsname\else",
        r"  \PackageError{gapfloor}{There is no number with the key '#1'}{The analysis that wrote this file had no",
        r"  data for this key. numbers.json lists the keys that exist.}\textbf{[no number: \detokenize{#1}]}\fi}",
        r"\newcommand{\gapfloor@define}[2]{\expandafter\gdef\csname gapfloor@#1\endcsname{#2}}",
    ]
    lines += [rf"\gapfloor@define{{{number.key}}}{{{number.tex}}}" for number in _sorted(numbers)]
    return "\n".join([*lines, r"\makeatother", ""])


def to_json(numbers: dict[str, Number]) -> str:
    """The same keys with their unrounded values, as one JSON document."""
    document = {
        number.key: {
            "text": number.cell.plain,
            "value": jsonable(number.cell.raw[0]),
            "n": number.n,
            "status": number.status or None,
        }
        for number in _sorted(numbers)
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _returns(findings: Findings) -> Iterator[Number]:
    for env, budget, rule in _cells(findings):
        for level_set in _SETS:
            row = findings.comparison(env, budget, rule, level_set)
            mean, sem, n, status = math.nan, math.nan, 0, ""
            if row:
                mean, sem, n, status = row.test.mean, row.test.sem, row.n, row.status
            elif gap := findings.gap(env, budget, rule):
                mean = gap.gap.train if level_set == TRAIN else gap.gap.test
                sem = gap.gap.train_sem if level_set == TRAIN else gap.gap.test_sem
                n, status = gap.n, gap.status
            key = _key(findings, env, budget, rule, level_set)
            yield Number(key, fixed(mean), n, status)
            yield Number(f"{key}.sem", fixed(sem), n, status)
            if env.game in ALL_OR_NOTHING:
                yield Number(f"succ.{key}", percent_number(mean / ALL_OR_NOTHING[env.game]), n, status)


def _floors(findings: Findings) -> Iterator[Number]:
    for env in findings.all_envs:
        for level_set in _SETS:
            row = findings.floor(env, level_set)
            if row is None:
                continue
            game = _game(findings, env)
            key = f"floor.{game}.{level_set}"
            yield Number(key, fixed(row.mean), row.n, row.status)
            yield Number(f"{key}.sem", fixed(row.sem), row.n, row.status)
            yield Number(f"{key}.n", integer(row.n), row.n, row.status)
            if env.game in ALL_OR_NOTHING:
                share = percent_number(row.mean / ALL_OR_NOTHING[env.game])
                yield Number(f"succ.{game}.floor.{level_set}", share, row.n, row.status)


def _deltas(findings: Findings) -> Iterator[Number]:
    for env, budget, rule in _cells(findings):
        for level_set in _SETS:
            row = findings.comparison(env, budget, rule, level_set)
            if row is None:
                continue
            name = _key(findings, env, budget, rule, level_set)
            key = f"d.{name}"
            cells = {
                key: fixed(row.test.delta, sign=True),
                f"{key}.u": fixed(row.test.delta),
                f"{key}.lo": fixed(row.test.ci[0]),
                f"{key}.hi": fixed(row.test.ci[1]),
                f"{key}.p": p_value(row.test.p),
                f"{key}.ph": p_value(row.decision.p_holm),
                f"{key}.ptost": p_value(row.test.p_tost),
                f"{key}.z": fixed(row.test.z, 1),
                f"{key}.n": integer(row.n),
                f"{key}.k": integer(row.test.runs_above),
                f"{key}.label": call_words(row.decision.call),
                f"ratio.{name}": fixed(row.ratio, 1),
            }
            for made, cell in cells.items():
                yield Number(made, cell, row.n, row.status)


def _gaps(findings: Findings) -> Iterator[Number]:
    for env, budget, rule in _cells(findings):
        row = findings.gap(env, budget, rule)
        if row is None:
            continue
        key = "gap." + _key(findings, env, budget, rule)
        cells = {
            key: fixed(row.gap.mean, sign=True),
            f"{key}.u": fixed(row.gap.mean),
            f"{key}.lo": fixed(row.gap.ci[0]),
            f"{key}.hi": fixed(row.gap.ci[1]),
            f"{key}.p": p_value(row.gap.p_fisher),
            f"{key}.ph": p_value(row.p_holm),
            f"{key}.z": fixed(row.gap.stouffer_z),
            f"{key}.n": integer(row.n),
        }
        for made, cell in cells.items():
            yield Number(made, cell, row.n, row.status)


def _pairs(findings: Findings) -> Iterator[Number]:
    """The differences between sampled and greedy: rd (returns) and gd (gaps)."""
    for env in findings.all_envs:
        for budget in findings.budgets_of(env):
            for quantity in _QUANTITIES:
                row = findings.pair(env, budget, "sampled", "greedy", quantity)
                if row is None:
                    continue
                stem = _join(_game(findings, env), budget)
                key = f"gd.{stem}" if quantity == "gap" else f"rd.{stem}.{quantity}"
                cells = {
                    key: fixed(row.test.difference, sign=True),
                    f"{key}.u": fixed(row.test.difference),
                    f"{key}.lo": fixed(row.test.ci[0]),
                    f"{key}.hi": fixed(row.test.ci[1]),
                    f"{key}.p": p_value(row.test.p),
                    f"{key}.n": integer(row.n),
                    f"{key}.ks": integer(row.test.runs_a_higher),
                    f"{key}.kg": integer(row.test.runs_b_higher),
                }
                for made, cell in cells.items():
                    yield Number(made, cell, row.n, row.status)


def _agents(findings: Findings) -> Iterator[Number]:
    for env, budget, rule in _cells(findings):
        for agent in findings.agents(env, budget):
            row = findings.agent(env, budget, rule, agent)
            if row is None:
                continue
            for level_set in _SETS:
                is_train = level_set == TRAIN
                key = f"enc.{_key(findings, env, budget, rule, level_set)}.{key_part(agent.lower())}"
                yield Number(key, fixed(row.train if is_train else row.test), row.n, row.status)
                z = row.z_train if is_train else row.z_test
                yield Number(f"{key}.z", fixed(z, 1), row.n, row.status)


def _differences(findings: Findings) -> Iterator[Number]:
    """Differences between agents: encd, and encpd with the draws one at a time."""
    for env, budget, rule in _cells(findings):
        stem = _key(findings, env, budget, rule)
        for quantity in _QUANTITIES:
            for at, row in enumerate(findings.differences(env, budget, rule, quantity)):
                pair = f"{key_part(row.agent_a.lower())}-{key_part(row.agent_b.lower())}"
                # The first pair has the plain key; with three agents or more the others name theirs.
                for name in (f"{stem}.{quantity}", f"{stem}.{quantity}.{pair}")[at > 0 :]:
                    cells = {
                        f"encd.{name}": fixed(row.test.difference, sign=True),
                        f"encd.{name}.u": fixed(row.test.difference),
                        f"encd.{name}.lo": fixed(row.test.ci[0]),
                        f"encd.{name}.hi": fixed(row.test.ci[1]),
                        f"encd.{name}.p": p_value(row.test.p),
                        f"encpd.{name}.pmin": p_value(row.p_draw_min),
                        f"encpd.{name}.pmax": p_value(row.p_draw_max),
                    }
                    for made, cell in cells.items():
                        yield Number(made, cell, row.n, row.status)
                if quantity == "gap":
                    key = f"encd.{stem}.share" if at == 0 else f"encd.{stem}.share.{pair}"
                    yield Number(key, percent_number(row.share_from_training), row.n, row.status)


def _screens(findings: Findings) -> Iterator[Number]:
    for env in findings.all_envs:
        for budget in findings.budgets_of(env):
            row = findings.screen(env, budget)
            if row is None:
                continue
            key = f"H.{_join(_game(findings, env), budget)}"
            cells = {
                key: fixed(row.entropy, 3),
                f"{key}.pct": fixed(row.fraction * 100, 1),
                f"{key}.probe": fixed(row.entropy_probe, 3),
                f"{key}.first": fixed(row.entropy_first, 3),
                f"{key}.greedy": fixed(row.entropy_greedy, 3),
                f"{key}.state": fixed(row.merged_state, 3),
                f"{key}.game": fixed(row.merged_game, 3),
                f"{key}.share": percent_number(row.share),
                f"{key}.k": integer(row.k),
                f"{key}.tier": Cell(row.tier, row.tier, (row.tier,)),
            }
            for made, cell in cells.items():
                yield Number(made, cell, row.n, row.status)


def _counts(findings: Findings) -> Iterator[Number]:
    for budget in findings.budgets:
        label = key_part(budget)
        summary = findings.screen_summary(budget)
        if summary:
            for name in ("raw", "merged_state", "merged_game"):
                key = _join(f"count.{name.removeprefix('merged_')}", label)
                count = getattr(summary, name)
                yield Number(key, integer(count), summary.games)
                yield Number(f"{key}.word", count_word(count), summary.games)
            yield Number(_join("share.min", label), percent_number(summary.share_min), summary.games)
            yield Number(_join("share.max", label), percent_number(summary.share_max), summary.games)
        for rule in findings.rules:
            for level_set in (TEST, TRAIN):
                row = findings.call_count(budget, rule, level_set)
                if row is None:
                    continue
                counts = {
                    "above": row.above, "below": row.below, "equivalent": row.equivalent,
                    "nd": row.not_distinguishable, "games": row.games, "v1atbelow": row.z_not_above,
                }  # fmt: skip
                for name, count in counts.items():
                    # The paper's counts are of held-out levels; those of training levels say so.
                    key = _join(f"count.{name}", label, rule_letter(rule))
                    key = key if level_set == TEST else f"{key}.train"
                    yield Number(key, integer(count), row.games)
                    yield Number(f"{key}.word", count_word(count), row.games)


def _merged(findings: Findings) -> Iterator[Number]:
    """The merged rule: `m.game.levels.*` at the main budget, `m.game.budget.levels.*` at every budget."""
    for env in findings.all_envs:
        for budget in findings.budgets_of(env):
            for level_set in _SETS:
                stems = [_join("m", _game(findings, env), budget, level_set)]
                if budget == findings.main_budget:
                    stems.append(_join("m", _game(findings, env), level_set))
                delta = findings.comparison(env, budget, MERGED, level_set)
                share = findings.disagreement(env, budget, MERGED, level_set)
                quantity: Quantity = "train" if level_set == TRAIN else "test"
                pair = findings.pair(env, budget, MERGED, "greedy", quantity)
                for stem in stems:
                    if delta:
                        yield Number(f"{stem}.d", fixed(delta.test.delta, sign=True), delta.n, delta.status)
                        yield Number(f"{stem}.ph", p_value(delta.decision.p_holm), delta.n, delta.status)
                        yield Number(f"{stem}.label", call_words(delta.decision.call), delta.n, delta.status)
                    if share:
                        yield Number(f"{stem}.dis", percent_number(share.share), share.n, share.status)
                    if pair:
                        yield Number(
                            f"{stem}.mg", fixed(pair.test.difference, sign=True), pair.n, pair.status
                        )
                        yield Number(f"{stem}.mg.p", p_value(pair.test.p), pair.n, pair.status)


def _scores(findings: Findings) -> Iterator[Number]:
    games: list[tuple[str, str | None, str]] = [
        (env.game, env.mode, _game(findings, env)) for env in findings.all_envs
    ]
    for budget in findings.budgets:
        for game, mode, name in [*games, (SUITE, None, SUITE)]:
            for rule in (*findings.rules, FLOOR):
                for level_set in _SETS:
                    row = findings.normalised(game, budget, rule, level_set, mode=mode)
                    if row is None:
                        continue
                    column = "floor" if rule == FLOOR else key_part(rule)
                    key = _join("cobbe", name, budget, f"{column}_{level_set}")
                    yield Number(key, fixed(row.score), row.n, row.status)


def _cells(findings: Findings) -> Iterator[tuple[Env, str, str]]:
    for env in findings.all_envs:
        for budget in findings.budgets_of(env):
            for rule in findings.rules:
                yield env, budget, rule


def _key(findings: Findings, env: Env, budget: str, rule: str, *more: str) -> str:
    return _join(_game(findings, env), budget, rule_letter(rule), *more)


def _game(findings: Findings, env: Env) -> str:
    return key_part(findings.name(env))


def _join(*parts: str) -> str:
    # Data without budgets have keys without them: miner.s.test.
    return ".".join(key_part(part) if "_" not in part else part for part in parts if part)


def _exists(cell: Cell) -> bool:
    value = cell.raw[0]
    return isinstance(value, str) or (value is not None and is_number(value))


def _sorted(numbers: dict[str, Number]) -> list[Number]:
    return [numbers[key] for key in sorted(numbers)]
