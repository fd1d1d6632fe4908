"""The page of numbers: every column and field that a user meets, with its meaning.

Fields come from the dataclasses themselves, their meanings from the sentence below each in the source; only what
has none there is said in `meanings.py`. So a new field without a meaning fails the tests, and none gets stale here.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from dataclasses import dataclass

from field_docs import FieldDoc, field_docs
from gapfloor.records.schema import CELLS, EPISODES, LABELS
from meanings import COLUMNS, PRINTED, RECORDS, SHARED

#: Where the hand-written page `docs/numbers.md` is continued.
MARKER = "<!-- generated: columns and fields -->"


@dataclass(frozen=True)
class Section:
    """Dataclasses that one command gives as JSON."""

    title: str
    words: str
    module: str
    names: tuple[str, ...] = ()
    """Empty: every public dataclass of the module."""

    @property
    def classes(self) -> list[type]:
        """The dataclasses of the section."""
        module = importlib.import_module(self.module)
        found = [
            cls
            for name, cls in vars(module).items()
            if inspect.isclass(cls) and cls.__module__ == self.module and dataclasses.is_dataclass(cls)
            and not name.startswith("_") and (not self.names or name in self.names)
        ]  # fmt: skip
        missing = set(self.names) - {cls.__name__ for cls in found}
        if missing:
            raise LookupError(f"{self.module} has no {', '.join(sorted(missing))}")
        return found


SECTIONS = (
    Section(
        "floor and evaluate",
        "`gapfloor floor --json`, `gapfloor evaluate --json`, and what `gapfloor.measure_floor` and "
        "`gapfloor.evaluate` return.",
        "gapfloor.analysis.evaluation_results",
    ),
    Section(
        "analyse",
        "`gapfloor analyse --json`; `--out` writes the same rows as one CSV file per table.",
        "gapfloor.analysis.results",
    ),
    *(
        Section(f"analyse: {title}", words, f"gapfloor.{module}", names)
        for title, words, module, names in (
            ("every row", "What every row has.", "analysis.row", ()),
            ("floors", "`floors`, `floor_comparisons`, `call_counts`.", "analysis.floor_results", ()),
            ("gaps", "`gaps`.", "analysis.gap_results", ()),
            ("differences", "`pairs`, `encoders`, `agents`.", "analysis.difference_results", ()),
            ("the entropy screen", "`screen`, `disagreements`.", "analysis.screen_results", ()),
            ("scores", "`normalised`, `profiles`.", "analysis.score_results", ()),
            ("a floor comparison", "Part of each floor comparison.", "statistics.floor", ()),
            ("a call", "Part of each floor comparison.", "statistics.families", ("FamilyCall",)),
            ("a gap", "Part of each gap and of its runs.", "statistics.gaps", ()),
            ("a difference", "Part of each pair and each agent difference.", "statistics.paired", ()),
            ("one draw", "Part of each draw of an agent difference.", "statistics.welch", ("WelchTest",)),
            ("tiers", "The points of `sweep`.", "statistics.screen", ()),
            ("scores of a suite", "Part of each profile.", "statistics.aggregate", ()),
            ("sign flip", "`robust.sign_flip`.", "statistics.signflip", ()),
            ("runs and levels", "`robust.crossed`.", "statistics.clustered", ("CrossedEstimate",)),
            ("excess and strata", "`robust.excess` and `robust.stratified`.", "statistics.excess", ()),
            ("random effects", "`robust.random_effects`.", "statistics.random_effects", ()),
        )
    ),
    Section("levels gap", "`gapfloor levels gap --json`.", "gapfloor.analysis.leaked", ("LeakedGap",)),
    Section("levels check", "`gapfloor levels check --json` and `leakage.json`.", "gapfloor.levels.overlap"),
    Section(
        "sweep, training-curve, compare: a mean over levels",
        "The value that the next three sections are made of.",
        "gapfloor.statistics.level_means",
        ("LevelContrast",),
    ),
    Section("sweep", "`gapfloor sweep --json`.", "gapfloor.analysis.sweep"),
    Section("sweep: the trend", "Return against entropy played.", "gapfloor.statistics.ranks"),
    Section("training-curve", "`gapfloor training-curve --json`.", "gapfloor.analysis.training_curves"),
    Section("compare", "`gapfloor compare --json`.", "gapfloor.api.compare"),
    Section(
        "compare: runs and levels",
        "The difference for new runs and new levels.",
        "gapfloor.statistics.crossed",
    ),
    Section("cka", "A record of `results/cka/*.json`.", "gapfloor.report.cka_input"),
    Section("train", "A row of a run's `log.parquet`.", "gapfloor.training.log", ("LogRow",)),
    Section("engines check", "`gapfloor engines check --json`.", "gapfloor.engines.contract_results"),
    Section(
        "engines list", "`gapfloor engines list --json`.", "gapfloor.engines.catalogue", ("InstalledEngine",)
    ),
)


def field_meaning(doc: FieldDoc) -> str:
    """What a field means: the source's own words, or else the shared ones; empty if there are none."""
    return doc.words or SHARED.get(f"{doc.owner}.{doc.name}") or SHARED.get(doc.name, "")


def column_meaning(name: str) -> tuple[str, str] | None:
    """Heading and meaning of a column of the report's CSV files."""
    if name in COLUMNS:
        return COLUMNS[name]
    rule = r"(sampled|greedy|merged|epsilon:[\d.]+|temperature:[\d.]+)"
    for pattern in (
        re.sub(rf"^{rule}(?=_|$)", "RULE", name),
        re.sub(rf"_{rule}$", "_RULE", name),
        re.sub(r"_\d+\.\d+$", "_CUT", name),
    ):
        if pattern in COLUMNS:
            return COLUMNS[pattern]
    return None


def generated_part() -> str:
    """What follows the hand-written head of the page."""
    parts = ["## Printed tables", ""]
    for command, headings in PRINTED.items():
        parts += [f"### `{command}` prints", "", *_table(("column", "meaning"), list(headings.items())), ""]
    parts += [
        "## Episode and cell tables of a store",
        "",
        "`cells/*.parquet` contain the episodes and the manifests the cell records. `Store(...).query` offers both",
        "as the tables `episodes` and `cells`. An episode file from your own harness has the columns of the first.",
        "",
        "### Episodes: one row per episode",
        "",
        *_table(("column", "meaning"), [(f"`{name}`", RECORDS[name]) for name in EPISODES.names]),
        "",
        "### Cells: one row per cell",
        "",
        f"The labels ({', '.join(f'`{name}`' for name in LABELS)}) as above, then:",
        "",
        *_table(
            ("column", "meaning"),
            [(f"`{name}`", RECORDS[name]) for name in CELLS.names if name not in LABELS],
        ),
        "",
        "## Tables of the report",
        "",
        "Columns of `csv/*.csv`, which are unrounded, and their headings in the printed tables. `RULE` is a rule's",
        "name (`sampled_delta`), `CUT` a number of nats. Which tables there are: [the report](report.md#tables).",
        "",
        *_table(
            ("CSV column", "printed as", "meaning"),
            [(f"`{name}`", printed, meaning) for name, (printed, meaning) in COLUMNS.items()],
        ),
        "",
        "## JSON documents",
        "",
        "Every command with `--json` prints one document. A number that cannot be computed is `null` there and NaN in",
        "Python.",
    ]
    for section in SECTIONS:
        parts += ["", f"### {section.title}", "", section.words]
        for cls in section.classes:
            rows = [(f"`{doc.name}`", field_meaning(doc)) for doc in field_docs(cls)]
            words = " ".join((inspect.getdoc(cls) or "").split())
            parts += ["", f"**{cls.__name__}**: {words}", "", *_table(("field", "meaning"), rows)]
    return "\n".join(parts) + "\n"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
