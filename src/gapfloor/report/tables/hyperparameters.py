"""The hyperparameters of the runs, from the headers of their checkpoints: hyper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gapfloor.escape import escape_tex
from gapfloor.report.findings import steps_of
from gapfloor.report.tables.wording import sentence
from gapfloor.tables.cells import Cell
from gapfloor.tables.table import Column, Missing, Table, Text

#: How hyperparameters of the trainer's header are named in a table; others keep their own name.
HYPERPARAMETERS = {
    "environments": Text("Parallel environments"),
    "rollout_length": Text("Rollout length"),
    "budget_steps": Text("Total timesteps"),
    "learning_rate": Text("Learning rate"),
    "discount": Text("Discount factor γ"),
    "gae_lambda": Text("GAE λ"),
    "minibatches": Text("Minibatches per update"),
    "epochs": Text("Update epochs"),
    "clip": Text("Clip coefficient"),
    "value_clipping": Text("Value loss clipping"),
    "entropy_coefficient": Text("Entropy coefficient"),
    "value_coefficient": Text("Value loss coefficient"),
    "max_gradient_norm": Text("Max gradient norm"),
    "adam_epsilon": Text("Adam ε"),
    "rewards": Text("Reward normalization / clipping"),
}
#: Fields that say how the arithmetic is cut into pieces; they are not hyperparameters of the method.
_NOT_SHOWN = {"micro_batch", "inference_batch"}
_REWARDS = {"raw": "none", "cleanrl": "normalized, clipped to ±10"}


def hyper(by_budget: Mapping[str, Mapping[str, Any]], *, note: str = "") -> Table | Missing:
    """Hyperparameters, one row each; a value that differs between budgets names them."""
    title = "PPO hyperparameters"
    if not by_budget:
        return Missing("hyper", title, note or "the data hold no checkpoints whose headers would say")
    by_budget = {budget: by_budget[budget] for budget in sorted(by_budget, key=steps_of)}
    names = list(HYPERPARAMETERS)
    names += sorted({name for values in by_budget.values() for name in values} - set(names) - _NOT_SHOWN)
    rows = []
    for name in names:
        shown = {
            budget: _hyper_text(name, values[name]) for budget, values in by_budget.items() if name in values
        }
        if not shown:
            continue
        texts = list(dict.fromkeys(shown.values()))
        if len(texts) == 1:
            plain = texts[0]
        elif name == "budget_steps":
            plain = "; ".join(texts)
        else:
            plain = "; ".join(f"{text} ({budget})" for budget, text in shown.items())
        label = HYPERPARAMETERS.get(name, Text(name.replace("_", " ").capitalize()))
        rows.append(
            (Cell(label.plain, label.tex, (name,)), Cell(plain, _power_of_ten(escape_tex(plain)), (plain,)))
        )
    return Table(
        name="hyper",
        title=title,
        caption=sentence("Hyperparameters of the runs, as their checkpoints' headers record them."),
        columns=(
            Column(Text("Hyperparameter"), "l", ("name",)),
            Column(Text("Value"), "l", ("value",)),
        ),
        rows=tuple(rows),
        notes=(note,) if note else (),
        separation="6pt",
    )


def _hyper_text(name: str, value: Any) -> str:
    if name == "rewards":
        return _REWARDS.get(str(value), str(value))
    if name == "budget_steps" and isinstance(value, int):
        millions = value / 1e6
        return f"{millions:g}M" if value >= 10**6 else f"{value / 1e3:g}k"
    if name == "learning_rate":
        return f"{_scientific(value)} (no annealing)"
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    if isinstance(value, float):
        return _scientific(value) if 0 < abs(value) < 1e-3 else f"{value:g}"
    return str(value)


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:e}".split("e")
    return f"{float(mantissa):g}×10^{int(exponent)}"


def _power_of_ten(tex: str) -> str:
    parts = tex.split(r"$\times$10\textasciicircum{}")
    if len(parts) == 1:
        return tex
    head, _, factor = parts[0].rpartition(" ")
    exponent, _, rest = parts[1].partition(" ")
    return f"{head} ${factor}\\times10^{{{exponent}}}$ {rest}".strip()
