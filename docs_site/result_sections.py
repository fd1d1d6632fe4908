"""The results that commands print as JSON, by command, and what their fields mean.

A meaning is the sentence below the field in the source, so documentation and code are one text.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from dataclasses import dataclass


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
        "`gapfloor floor --json`, `gapfloor evaluate --json`, and what `gapfloor.floor` and "
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
    Section(
        "levels, with a gap",
        "`gapfloor levels --gap STORE --json`.",
        "gapfloor.analysis.leaked",
        ("LeakedGap",),
    ),
    Section("levels", "`gapfloor levels --json` and `leakage.json`.", "gapfloor.levels.overlap"),
    Section(
        "sweep, training-curve, compare: a mean over levels",
        "The value that the next three sections are made of.",
        "gapfloor.statistics.level_means",
        ("LevelContrast",),
    ),
    Section("sweep", "`gapfloor sweep --json`.", "gapfloor.analysis.sweep"),
    Section("sweep: the trend", "Return against entropy played.", "gapfloor.statistics.ranks"),
    Section("training-curve", "`gapfloor training-curve --json`.", "gapfloor.analysis.training_curves"),
    Section("compare", "`gapfloor compare --json`.", "gapfloor.analysis.comparison"),
    Section(
        "compare: runs and levels",
        "The difference for new runs and new levels.",
        "gapfloor.statistics.crossed",
    ),
    Section("cka", "A record of `results/cka/*.json`.", "gapfloor.report.cka_input"),
    Section("train", "A row of a run's `log.parquet`.", "gapfloor.training.log", ("LogRow",)),
    Section("doctor", "`gapfloor doctor GAME --json`.", "gapfloor.engines.contract_results"),
)
