"""What a user says about a table that the table itself does not say: other column names, constant labels, the floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gapfloor.errors import UsageError, unknown_name

#: Columns that a table of episodes can have, with other names under which people keep them.
ALIASES: dict[str, tuple[str, ...]] = {
    "game": ("env", "environment", "env_id", "env_name", "task", "game_name"),
    "mode": ("distribution_mode", "difficulty"),
    "budget": ("total_timesteps", "timesteps", "total_steps", "training_steps", "steps"),
    "agent": ("encoder", "algo", "algorithm", "method", "model", "agent_name", "policy"),
    "seed": ("run", "run_seed", "training_seed", "train_seed", "agent_seed", "trial", "run_id"),
    "reference": (),
    "rule": ("action_rule", "action_selection", "decoding"),
    "level_set": ("split", "levels", "level_split", "partition", "set", "phase", "dataset"),
    "draw": ("eval_seed", "evaluation_seed", "rand_seed"),
    "slot": (),
    "index": (),
    "level_seed": ("level", "level_id", "env_seed", "level_number"),
    "episode_return": (
        "return", "reward", "score", "episode_reward", "total_reward", "ep_return", "ep_reward", "ep_rew", "returns",
        "rewards", "scores", "r",
    ),
    "step": ("global_step", "training_iteration", "env_step", "env_steps"),
    "length": ("episode_length", "ep_length", "ep_len", "l"),
}  # fmt: skip

#: Columns of a table of means, with other names for them.
SUMMARY_ALIASES: dict[str, tuple[str, ...]] = {
    "mean": (
        "avg", "average", "mean_return", "mean_reward", "mean_score", "return_mean", "reward_mean", "score_mean",
        "mean_episode_return", "mean_episode_reward", "avg_return", "avg_reward",
    ),
    "std": ("sd", "stdev", "std_dev", "standard_deviation", "return_std", "std_return", "std_reward", "score_std"),
    "sem": ("se", "stderr", "std_err", "std_error", "standard_error"),
    "n": ("n_runs", "n_seeds", "num_seeds", "num_runs", "seeds", "runs"),
}  # fmt: skip

#: Labels that a column of constants can supply.
LABEL_NAMES = ("game", "mode", "budget", "agent", "seed", "rule", "level_set", "draw")
#: Constants of a table of means: the number of runs, and whether ± is a std or a sem.
SUMMARY_LABELS = ("n", "spread")


@dataclass(frozen=True)
class TableOptions:
    """How to read a table of episodes that somebody else's tool wrote."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Our name -> the file's name, where the file has a name of its own."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that hold for every episode of the file, e.g. rule -> sampled."""
    floor: str = ""
    """The agent or rule whose rows are the floor."""
    decimal: str = "."
    """The decimal mark of a text file."""
    step: str = ""
    """`last`: of a learning curve, the last step of each run is read."""

    def __post_init__(self) -> None:
        for name in self.columns:
            if name not in {**ALIASES, **SUMMARY_ALIASES}:
                raise unknown_name("column", name, {**ALIASES, **SUMMARY_ALIASES})
        for name in self.labels:
            if name not in (*LABEL_NAMES, *SUMMARY_LABELS):
                raise unknown_name("label", name, (*LABEL_NAMES, *SUMMARY_LABELS))
        if self.decimal not in (".", ","):
            raise UsageError(f"--decimal {self.decimal!r} is not a decimal mark: use . or ,")
        if self.step not in ("", "last"):
            raise UsageError(f"--step {self.step!r} is not known: use last, or leave it out.")


def parse_table_options(
    *,
    columns: str | Mapping[str, str] = "",
    labels: Sequence[str] | Mapping[str, str] = (),
    rule: str = "",
    floor: str = "",
    decimal: str = ".",
    step: str = "",
) -> TableOptions:
    """The options as a command line or a script gives them: "game=env,agent=algo" or a mapping.

    >>> parse_table_options(columns="game=env", rule="sampled").columns
    {'game': 'env'}
    """
    constant = name_value_pairs(labels, "--label")
    if rule:
        if constant.get("rule", rule) != rule:
            raise UsageError(f"--rule {rule} and --label rule={constant['rule']} contradict each other.")
        constant["rule"] = rule
    if isinstance(columns, str):
        columns = name_value_pairs([part for part in columns.split(",") if part.strip()], "--columns")
    return TableOptions(columns=dict(columns), labels=constant, floor=floor, decimal=decimal, step=step)


def name_value_pairs(parts: Sequence[str] | Mapping[str, str], option: str) -> dict[str, str]:
    """NAME=VALUE texts as a mapping; `option` names them in errors."""
    if isinstance(parts, Mapping):
        return {str(name): str(value) for name, value in parts.items()}
    found: dict[str, str] = {}
    for part in parts:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise UsageError(f"{option} {part!r} is not NAME=VALUE.")
        if found.get(name, value) != value:
            raise UsageError(f"{option} names {name} twice: {found[name]} and {value}.")
        found[name] = value
    return found
