"""The columns of the report's CSV files: what each is printed as, and what it means.

Tests refuse a table with a column that is not explained here. RULE stands for the name of a rule and CUT for a number
of nats; `NAME_low` and `NAME_high` are the ends of the interval that is printed in brackets.
"""

from __future__ import annotations

import re

from gapfloor.analysis.columns import REGISTRIES

#: CSV column -> its heading in the printed table, and its meaning.
CSV_COLUMNS: dict[str, tuple[str, str]] = {
    "env": ("Env", "The game, with its mode and budget where there are several."),
    "budget": ("Budget", "Label of the training budget, e.g. 8M; empty if there is none."),
    "agent": ("Encoder, Agent", "The agent (encoder or algorithm) by name."),
    "rule": ("Rule", "How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."),
    "levels": ("Levels", "`train` or `test`."),
    "n": ("n", "Runs."),
    "runs": ("Runs", "Runs."),
    "floor": ("Floor", "Mean return of uniform play on the same level draws."),
    "floor_sem": ("Floor ±", "Its per-episode standard error."),
    "RULE": ("Return", "Mean return over runs under the rule."),
    "RULE_sem": ("Return ±", "Its standard error over runs."),
    "RULE_delta": ("Δ", "Return minus floor."),
    "RULE_delta_low": ("Δ [", "Lower end of its interval (by the plan's method)."),
    "RULE_delta_high": ("Δ ]", "Upper end."),
    "RULE_call": ("Call", "above, below, equiv. or n.d. (not distinguishable) from the floor."),
    "RULE_z": ("z", "The Welch statistic, treated as normal; descriptive."),
    "RULE_runs_above": ("k", "Runs above the floor's mean."),
    "RULE_runs": ("n of k/n", "Runs."),
    "RULE_train": ("Train", "Mean return on training levels; in `cobbe` the normalised score."),
    "RULE_train_sem": ("Train ±", "Standard error over runs."),
    "RULE_test": ("Test", "Mean return on held-out levels; in `cobbe` the normalised score."),
    "RULE_test_sem": ("Test ±", "Standard error over runs."),
    "RULE_gap": ("Gap", "Train - test."),
    "RULE_gap_sem": ("Gap ±", "Standard error over runs."),
    "RULE_gap_low": ("Gap [", "Lower end of its 95% bootstrap interval over runs."),
    "RULE_gap_high": ("Gap ]", "Upper end."),
    "RULE_adjusted": (
        "Adjusted",
        "The gap minus the part that the floor's return on the same levels explains.",
    ),
    "RULE_adjusted_low": ("Adjusted [", "Lower end of its interval, at the level at which Holm tested it."),
    "RULE_adjusted_high": ("Adjusted ]", "Upper end."),
    "RULE_gap_call": ("Call", "train higher, test higher, not distinguishable or not tested."),
    "RULE_fisher_p": (
        "Fisher p",
        "Fisher's combination of the runs' own Welch tests: small when some run differs.",
    ),
    "RULE_holm_p": ("Holm p", "p of the gap after Holm over the games."),
    "RULE_stouffer_z": ("Stouffer Z, Z", "The runs' one-sided tests combined; > 0: train higher."),
    "gap_RULE": ("Gap (s), Gap (g)", "Pooled gap under the rule."),
    "train": ("Train", "Mean return on training levels."),
    "train_sem": ("Train ±", "Standard error: over runs, for the floor over episodes."),
    "test": ("Test", "Mean return on held-out levels."),
    "test_sem": ("Test ±", "Standard error: over runs, for the floor over episodes."),
    "gap": ("Gap", "Train - test."),
    "gap_sem": ("Gap ±", "Standard error: over runs, for the floor over episodes."),
    "floor_train": ("Uniform floor: Train", "Normalised score of the floor on training levels."),
    "floor_test": ("Uniform floor: Test", "Normalised score of the floor on held-out levels."),
    "r_min": ("R_min", "Return that counts as score 0 by the published constants."),
    "r_max": ("R_max", "Return that counts as score 1."),
    "entropy": ("H", "Raw-action entropy in nats on the states of sampled play."),
    "percent_of_maximum": ("% max", "Entropy over ln(number of actions)."),
    "raw_tier": ("Raw tier", "low, intermediate or high by the plan's cuts."),
    "tier": ("Tier", "Raw-entropy tier of this agent's runs."),
    "merged_tier_state": ("Merged (state)", "Tier after merging each state's equal actions."),
    "merged_tier_game": ("Merged (game)", "Tier after merging the game's equal actions."),
    "share": ("Share", "Fraction of the entropy that lies on equivalent actions."),
    "call": (
        "Call, Above-floor",
        "The held-out call under the primary rule; in `references` against the reference.",
    ),
    "raw_CUT": ("1.8 ... 2.2", "Raw tier if the lower cut were there."),
    "merged_state_CUT": ("1.8 ... 2.2", "Merged tier if the lower cut were there."),
    "k": ("k (global)", "Distinct actions of the game."),
    "raw_entropy": ("Raw H", "Raw entropy on the probe states."),
    "merged_state": (
        "Merged H (state)",
        "Entropy over each probe state's own classes of equal actions, in nats.",
    ),
    "merged_game": ("Merged H (game)", "Entropy over the game's classes of equal actions, in nats."),
    "greedy_states": ("Greedy states", "Raw entropy on the states of greedy play."),
    "first_1024": ("First 1024", "Raw entropy on the first 1024 states of a cell."),
    "merged_minus_greedy": ("Merged−greedy", "Merged argmax minus plain argmax, paired over runs."),
    "disagreement": (
        "Disagree.",
        "Share of counted steps on which the rule chose a class other than that of plain argmax.",
    ),
    "delta": ("Δ", "Return minus floor, or minus the reference."),
    "delta_low": ("Δ [", "Lower end of its interval (by the plan's method)."),
    "delta_high": ("Δ ]", "Upper end."),
    "floor_gap": ("Floor gap", "The floor's own train - test difference."),
    "holm_p": ("Holm p", "p after Holm's correction over the family."),
    "reference": ("Reference", "A reference stricter than uniform play."),
    "reference_return": ("Its return", "Its mean return on the same draws."),
    "reference_sem": ("Its return ±", "Its standard error."),
    "return": ("Return", "Mean return over runs."),
    "return_sem": ("Return ±", "Standard error over runs."),
    "episodes": ("Episodes", "Held-out episodes of the runs that remain."),
    "left_out": ("Left out", "Which levels are left out: none, leaked, or leaked and their training twins."),
    "train_levels": ("Train levels", "Training levels that remain."),
    "test_levels": ("Test levels", "Held-out levels that remain."),
    "test_left_out": ("On left out", "Mean return on the held-out levels that are left out."),
    "codebase": ("Codebase", "An audited code base."),
    "venue": ("Venue", "Where its paper appeared."),
    "stochastic": ("Stoch., S", "Whether it samples actions at test time."),
    "in_loop": ("In-loop, L", "Whether its test returns are a running mean over changing weights."),
    "commit": ("Commit", "The pinned commit that was read."),
    "location": ("Location", "File and line where the rule is decided."),
    "name": ("Hyperparameter", "Its name."),
    "value": ("Value", "Its value; where budgets differ, each with its budget."),
    "as_computed": ("As computed", "CKA of training rows against held-out rows that share slot and step."),
    "permutation": ("Perm.", "Mean CKA with one side's rows shuffled."),
    "analytic": ("Analytic", "That mean without shuffling: sqrt(PR_X PR_Y) / (n - 1)."),
    "A": ("A", "Half of the training slots against held-out rows at the same step."),
    "B": ("B", "A with one side's rows shuffled."),
    "C": ("C", "The same training rows against those of the other half of the training slots."),
    "D": ("D", "C with one side's rows shuffled."),
    "participation_ratio": ("PR", "Participation ratio: how many directions the training features fill."),
}

#: The columns of the registries, which further tables have.
_MEANINGS = CSV_COLUMNS | {
    name: (column.title, column.meaning)
    for registry in REGISTRIES.values()
    for column in registry.values()
    for name in column.csv
    if name not in CSV_COLUMNS
}
_RULE = r"(sampled|greedy|merged|epsilon:[^_]+|temperature:[^_]+)"


def column_meaning(name: str) -> tuple[str, str] | None:
    """Heading and meaning of a column of the report's CSV files; None: it is not explained."""
    spellings = (
        name,
        re.sub(rf"^{_RULE}(?=_|$)", "RULE", name),
        re.sub(rf"_{_RULE}$", "_RULE", name),
        re.sub(r"_\d+\.\d+$", "_CUT", name),
    )
    return next((_MEANINGS[each] for each in spellings if each in _MEANINGS), None)
