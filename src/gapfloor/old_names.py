"""Public names of version 0.2, which work until the next version with a warning that names the new one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from gapfloor.lazy import resolve

#: Old name -> where it lives now, and the public name to write instead.
OLD_NAMES = {
    "audit_ledger": ("gapfloor.api.audit:audit_ledger", "audit.ledger"),
    "audit_registry": ("gapfloor.old_names:_audit_registry", "audit.ledger(registry=True)"),
    "audit_scan": ("gapfloor.api.audit:audit_scan", "audit"),
    "audit_trace": ("gapfloor.api.audit:audit_trace", "audit.trace"),
    "audit_verify": ("gapfloor.old_names:_audit_verify", "audit.ledger(repos=...)"),
    "check_levels": ("gapfloor.api.levels:levels", "levels"),
    "engines_check": ("gapfloor.api.doctor:doctor", "doctor(game)"),
    "engines_list": ("gapfloor.api.doctor:doctor", "doctor()"),
    "known_floors": ("gapfloor.api.floor:known_floor", "known_floor"),
    "load_policy": ("gapfloor.old_names:_load_policy", "play.candidate.policy_source(policy).load()"),
    "measure_floor": ("gapfloor.api.floor:floor", "floor"),
    "plan_addendum": ("gapfloor.old_names:_lock_addendum", "Plan.lock(plan,addendum=...)"),
    "plan_check": ("gapfloor.api.plan_files:check_plan", "Plan.check"),
    "plan_init": ("gapfloor.api.plan_files:init_plan", "Plan.init"),
    "plan_lock": ("gapfloor.api.plan_files:lock_file", "Plan.lock"),
    "plot": ("gapfloor.api.plot:plot", "the method plot() of the result"),
    "replay": ("gapfloor.api.replay:replay", "Store.replay"),
    "verify_store": ("gapfloor.api.verify:verify", "Store.verify"),
    "write_report": ("gapfloor.api.report:report", "report"),
}

#: Arguments that have another name now, by the old name of their function.
_OLD_ARGUMENTS = {
    "measure_floor": {"reference": "references"},
    "plan_addendum": {"episodes": "store"},
    "plan_lock": {"episodes": "store"},
    "replay": {"allowed": "allow"},
    "verify_store": {"allowed": "allow"},
}


def old_name(name: str) -> Callable[..., Any]:
    """The function that an old name stands for; says once per place what to write instead."""
    home, instead = OLD_NAMES[name]
    words = instead if " " in instead else f"gapfloor.{instead}"
    warnings.warn(
        f"gapfloor.{name} goes away in the next version: use {words} instead.",
        DeprecationWarning,
        stacklevel=3,
    )
    function: Callable[..., Any] = resolve(home)
    renamed = _OLD_ARGUMENTS.get(name)
    if renamed is None:
        return function

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **{renamed.get(each, each): value for each, value in named.items()})

    return call


def _load_policy(source: Any, *, device: str = "cpu") -> Any:
    return resolve("gapfloor.play.candidate:policy_source")(source, device=device).load()


def _lock_addendum(path: Any, addendum: Any, **settings: Any) -> Any:
    return resolve("gapfloor.api.plan_files:lock_file")(path, addendum=addendum, **settings)


def _audit_registry(files: Any = (), **settings: Any) -> Any:
    return resolve("gapfloor.api.audit:audit_ledger")(registry=True, files=files, **settings)


def _audit_verify(repos: Any = "gapfloor-audit-repos", **settings: Any) -> Any:
    return resolve("gapfloor.api.audit:audit_ledger")(repos=repos, **settings)
