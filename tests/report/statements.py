"""Every statement that a report makes about a comparison, collected from what it wrote and from the terminal.

A statement is about a game, budget and rule, on training or held-out levels or of their gap, and says a call, an
interval with its p, or both.
"""

from __future__ import annotations

import csv
import html
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gapfloor.report.findings import Env, Findings, agent_name
from gapfloor.report.source import ReportSource
from gapfloor.report.write import WrittenReport
from gapfloor.tables.terminal import to_terminal

#: A call as outputs spell it -> the call.
CALLS = {
    "equiv.": "equivalent", "n.d.": "not distinguishable", "n.t.": "not tested", "above": "above", "below": "below",
    "equivalent": "equivalent", "not distinguishable": "not distinguishable", "not tested": "not tested",
    "train higher": "train higher", "test higher": "test higher",
}  # fmt: skip
_SENTENCES = {
    "above chance": "above", "worse than random play": "below", "equivalent to random play": "equivalent",
    "not distinguishable from random play": "not distinguishable", "not tested against random play": "not tested",
}  # fmt: skip
_BADGES = {
    "above the floor": "above", "below the floor": "below", "equivalent to the floor": "equivalent",
    "not distinguishable from the floor": "not distinguishable", "not distinguishable": "not distinguishable",
    "not tested": "not tested",
}  # fmt: skip
_LETTERS = {"s": "sampled", "g": "greedy", "m": "merged"}
#: Tables that say what another method or other choices give.
_OTHER_CHOICES = {"other_method", "sensitivity"}
_SETS = {"training": "train", "held-out": "test"}
_INTERVAL = r"\[([-+−.\d]+), ([-+−.\d]+)\]"

About = tuple[str, str, str, str]
"""Game as the report writes it, budget, rule, and train, test, gap or another reference."""


class Statement(NamedTuple):
    """What one place says about one comparison."""

    place: str
    about: About
    call: str = ""
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    is_rounded: bool = False


def statements(source: ReportSource, written: WrittenReport) -> Iterator[Statement]:
    """Everything that is said."""
    folder, findings = written.folder, source.findings
    yield from _of_json(findings)
    yield from _of_terminal(findings)
    yield from _of_summary(written, findings)
    yield from _of_tables(folder, findings)
    yield from _of_numbers(folder, findings)
    yield from _of_card(folder, findings)
    yield from _of_card_text(folder, findings)
    yield from _of_page(folder, findings)


def _call(text: str) -> str:
    """The call without the reason or the doubt in brackets."""
    bare = re.sub(r" \(.*", "", text)
    return CALLS.get(bare) or _BADGES[bare]


def _number(text: Any) -> float:
    return math.nan if text in (None, "", "–") else float(str(text).replace("−", "-"))


def _name(findings: Findings, game: str, mode: str, agent: str | None) -> str:
    return findings.name(Env(game, mode, "" if findings.plan.pooled else agent or ""))


def _of_json(findings: Findings) -> Iterator[Statement]:
    """The document of `gapfloor analyse --json`."""
    document = json.loads(json.dumps(findings.results.to_dict()))
    for kind, estimate in (
        ("floor_comparisons", "delta"), ("reference_comparisons", "delta"), ("gaps", "estimate"),
    ):  # fmt: skip
        for row in document[kind]:
            what = "gap" if kind == "gaps" else row["level_set"]
            if kind == "reference_comparisons":
                what += f" against {row['reference']}"
            about = (
                _name(findings, row["game"], row["mode"], row["agent"]),
                row["budget"],
                row["rule"],
                what,
            )
            found, decision = row[estimate], row["decision"]
            ends = map(_number, (found["low"], found["high"], decision["p_adjusted"]))
            yield Statement("json", about, decision["call"], *ends)


def _of_terminal(findings: Findings) -> Iterator[Statement]:
    """The tables of `gapfloor analyse --wide` as blocks, which have a label on every line."""
    for table in findings.results.tables():
        if "call" not in {column.key for column in table.columns}:
            continue
        for block in to_terminal(table, 60, wide=True).removeprefix(table.title).split("\n\n"):
            row: dict[str, str] = {}
            label = ""
            for line in block.strip("\n").splitlines():
                if line.startswith(" "):
                    row[label] += f" {line.strip()}"
                elif "  " in line:
                    label, row[label] = re.split(r"  +", line, maxsplit=1)
            if "call" not in row or row.get("reference", "uniform") != findings.plan.reference:
                continue
            name = _name(findings, row["game"], row.get("mode", ""), row.get("agent"))
            about = (name, row.get("budget", ""), row["rule"], row.get("levels", "gap"))
            found = re.search(_INTERVAL, row.get("difference [interval]") or row.get("tested [interval]", ""))
            ends = map(_number, found.groups()) if found else (math.nan, math.nan)
            yield Statement("terminal", about, _call(row["call"]), *ends, is_rounded=True)


def _of_summary(written: WrittenReport, findings: Findings) -> Iterator[Statement]:
    """What `gapfloor report` prints."""
    places = {
        f"{place.name} {budget}".strip(): (place.name, budget, findings.primary, "test")
        for budget in findings.budgets
        for place in findings.places(budget)
    }
    for line in written.sentences():
        found = re.match(r"  (.+?): ([a-z ]+)\. These data support", line)
        if found and found[2] != "no floor":
            yield Statement("summary", places[found[1]], _BADGES[found[2]])


def _of_tables(folder: Path, findings: Findings) -> Iterator[Statement]:
    """Every table with calls: CSV, and the same rows in LaTeX, Markdown and on the page."""
    page = (folder / "index.html").read_text(encoding="utf-8")
    markdown = (folder / "tables.md").read_text(encoding="utf-8")
    for path in sorted((folder / "csv").glob("*.csv")):
        rows = list(csv.DictReader(path.open(encoding="utf-8")))
        if path.stem in _OTHER_CHOICES or not any("call" in name for name in rows[0]):
            continue
        said = [list(_of_csv_row(path, row, findings)) for row in rows]
        yield from (one for line in said for one in line)
        tex = (folder / "tables" / f"{path.stem}.tabular.tex").read_text(encoding="utf-8")
        lines = {
            f"{path.stem}.tex": [
                [cell.strip() for cell in line.removesuffix(r"\\").split(" & ")]
                for line in tex.partition("\\midrule")[2].splitlines()
                if line.endswith(r"\\")
            ],
            f"page table {path.stem}": [
                re.findall(r">([^<>]*)</td>", line)
                for line in _between(page, f'id="table-{path.stem}"', "</tbody>")
                .partition("<tbody>")[2]
                .split("</tr>")[:-1]
            ],
            f"tables.md {path.stem}": [
                [cell.strip() for cell in line.strip("|").split(" | ")]
                for line in _between(markdown, f'<a id="{path.stem}"></a>', '<a id="').splitlines()
                if line.startswith("| ")
            ][2:],
        }
        for place, body in lines.items():
            assert len(body) == len(said), (place, len(body), len(said))
            for cells, known in zip(body, said, strict=True):
                calls = [CALLS[cell] for cell in cells if cell in CALLS]
                assert len(calls) == len(known), (place, cells, known)
                yield from (Statement(place, one.about, call) for one, call in zip(known, calls, strict=True))


def _of_csv_row(path: Path, row: dict[str, str], findings: Findings) -> Iterator[Statement]:
    budget, game = row.get("budget"), row["env"]
    if budget is None:
        slugs = {findings.slug(each): each for each in findings.budgets}
        found = re.fullmatch(r"(.*) \((.*)\)", game)
        if found and found[2] in findings.budgets:
            game, budget = found.groups()
        else:
            ends = [slug for slug in slugs if slug and path.stem.endswith(slug)]
            budget = slugs[max(ends, key=len)] if ends else findings.main_budget
    for name, text in row.items():
        found = re.fullmatch(r"(?:(.+?)_)?(gap_)?call", name)
        if not (found and text):
            continue
        rule, is_gap = found[1] or row.get("rule") or findings.primary, bool(found[2])
        what = "gap" if is_gap else row.get("levels") or row.get("quantity") or "test"
        if "reference" in row:
            what += f" against {row['reference']}"
        stem = f"{rule}_adjusted" if is_gap else f"{rule}_delta"
        stem = stem if f"{stem}_low" in row else "delta"
        p = row.get(f"{rule}_holm_p") or row.get("holm_p") if is_gap or "reference" in row else None
        about = (game, budget, rule, what)
        yield Statement(
            path.name, about, text, *map(_number, (row.get(f"{stem}_low"), row.get(f"{stem}_high"), p))
        )


def _of_numbers(folder: Path, findings: Findings) -> Iterator[Statement]:
    """numbers.json, and the words that numbers.tex prints."""
    games = {findings.keys["game"][findings.name(env)]: findings.name(env) for env in findings.all_envs}
    budgets = {findings.keys["budget"][budget]: budget for budget in findings.budgets}
    numbers = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    macros = dict(re.findall(r"define\{(.*?\.label)\}\{(.*)\}", (folder / "numbers.tex").read_text("utf-8")))
    for key, number in numbers.items():
        found = re.fullmatch(r"(d|gap)\.(.+?)\.(?:(.+)\.)?([sgm])(?:\.(train|test))?\.label", key)
        if found is None or (found[1] == "d") != bool(found[5]):
            continue
        game, budget, letter, level_set = found.groups()[1:]
        about = (games[game], budgets[budget or ""], _LETTERS[letter], level_set or "gap")
        stem = key.removesuffix(".label")
        ends = stem if f"{stem}.lo" in numbers else stem.replace("gap.", "adj.", 1)
        low, high = (numbers.get(f"{ends}.{end}", {}).get("value") for end in ("lo", "hi"))
        p = numbers.get(f"{stem}.ph", {}).get("value")
        yield Statement("numbers.json", about, number["value"], _number(low), _number(high), _number(p))
        yield Statement("numbers.tex", about, _call(macros[key]))


def _of_card(folder: Path, findings: Findings) -> Iterator[Statement]:
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    for game in card["games"]:
        where = (_name(findings, game["game"], game["mode"], game["agents"][0]), game["budget"])
        for rule, entry in game["rules"].items():
            for what in ("train", "test", "gap"):
                if found := entry[what]:
                    ends = map(_number, (found["low"], found["high"], found["p_holm"]))
                    yield Statement("card.json", (*where, rule, what), _call(found["call"]), *ends)
        yield from _of_sentence("card.json reading", where, game["reading"]["sentence"], findings)


def _of_sentence(
    place: str, where: tuple[str, str], sentence: str, findings: Findings
) -> Iterator[Statement]:
    """The sentence of a verdict: the call of the primary rule, and that of the second."""
    first, _, second = sentence.partition("; with ")
    words = "|".join(sorted(_SENTENCES, key=len, reverse=True))
    for rule, text in ((findings.primary, first), (findings.secondary, second)):
        found = re.search(rf"({words})\.?$", text)
        if found and rule:
            yield Statement(place, (*where, rule, "test"), _SENTENCES[found[1]])


def _of_card_text(folder: Path, findings: Findings) -> Iterator[Statement]:
    """card.md, and the same table in model-card.md."""
    games = json.loads((folder / "card.json").read_text(encoding="utf-8"))["games"]
    modes = {(game["game"], agent_name(game["agents"][0])): game for game in games}
    for name in ("card.md", "model-card.md"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        head = next(line for line in lines if line.startswith("| Game"))
        titles = [title.strip() for title in head.strip("|").split(" | ")]
        for line in lines[lines.index(head) + 2 :]:
            if not line.startswith("| "):
                continue
            texts = [re.sub(r"\\([][_*])", r"\1", cell.strip()) for cell in line.strip("|").split(" | ")]
            row = dict(zip(titles, texts, strict=True))
            game = modes[row["Game"], row["Agents"].split(", ")[0]]
            where = (_name(findings, game["game"], game["mode"], game["agents"][0]), row["Budget"])
            rule = row["Rule"].removesuffix(" (primary)")
            if row["Call (test)"] != "–":
                yield Statement(name, (*where, rule, "test"), _call(row["Call (test)"]))
            if row["Gap call"] != "–":
                found = re.search(_INTERVAL, row.get("Adjusted gap [interval]") or row["Gap [95% CI]"])
                ends = map(_number, found.groups()) if found else (math.nan, math.nan)
                yield Statement(name, (*where, rule, "gap"), _call(row["Gap call"]), *ends, is_rounded=True)


def _of_page(folder: Path, findings: Findings) -> Iterator[Statement]:
    """Badges, sentences and the words of marks, in the order of the page."""
    page = html.unescape((folder / "index.html").read_text(encoding="utf-8"))
    cards = {
        "-".join(filter(None, ("game", findings.slug(place.name), findings.slug(budget)))): (
            place.name,
            budget,
        )
        for budget in findings.budgets
        for place in findings.places(budget)
    }
    ends = {
        f"_{findings.slug(budget)}": budget for budget in findings.budgets if budget != findings.main_budget
    }
    where, budget = ("", ""), ""
    pieces = re.finditer(
        r'<article class="card (?P<badge>[a-z-]+)" id="(?P<card>[^"]*)"'
        r'|<span class="badge [a-z-]+">(?P<words>[a-z ]+)</span>(?= |</header>)|<p class="says">(?P<says>[^<]*)'
        r'|id="figure-(?P<figure>[^"]*)"|aria-label="(?P<panel>[^"]*): return against floor"'
        r'|data-tip="(?P<rule>[^",:]+), (?P<levels>training|held-out)(?: levels)?: [^"]*?'
        rf"(?:{_INTERVAL}[^\"]*)?; (?P<call>[a-z ]+)\"",
        page,
    )
    for found in pieces:
        if found["card"]:
            where = cards[found["card"]]
            yield Statement("badge", (*where, findings.primary, "test"), found["badge"].replace("-", " "))
        elif found["words"] and where[0] and found["words"] in CALLS:
            yield Statement("badge words", (*where, findings.primary, "test"), found["words"])
        elif found["says"]:
            yield from _of_sentence("page", where, found["says"], findings)
        elif found["figure"]:
            name = found["figure"]
            budget = next((each for end, each in ends.items() if name.endswith(end)), findings.main_budget)
        elif found["panel"]:
            where = (found["panel"], budget)
        elif found["call"]:
            about = (*where, found["rule"], _SETS[found["levels"]])
            low, high = map(_number, found.groups()[-3:-1])
            yield Statement("mark", about, found["call"], low, high, is_rounded=True)


def _between(text: str, start: str, end: str) -> str:
    at = text.find(start)
    assert at >= 0, start
    stop = text.find(end, at + len(start))
    return text[at : stop if stop >= 0 else len(text)]
