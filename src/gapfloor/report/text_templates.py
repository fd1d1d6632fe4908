"""The words of a report: templates of sentences, with the filters and functions that they use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import jinja2

from gapfloor.escape import escape_markdown, escape_tex
from gapfloor.report.findings import agent_name, at_budget
from gapfloor.settings import shipped_text
from gapfloor.statistics.normalised import published_scale
from gapfloor.tables.cells import (
    count_word,
    counted,
    estimate,
    fixed,
    formatted,
    is_number,
    mean_sem,
    p_value,
)


def said(name: str, **values: Any) -> list[tuple[tuple[str, ...], str]]:
    """What a template says in its blocks `{% call say(...) %}`: the words in brackets, and the text on one line."""
    found: list[tuple[tuple[str, ...], str]] = []

    def say(*about: str, caller: Callable[[], str]) -> str:
        found.append((about, re.sub(r"\n\s*", " ", caller().strip())))
        return ""

    template(name).render(say=say, **values)
    return found


@cache
def template(name: str) -> jinja2.Template:
    """A template of plain text; a value that is not given is an error."""
    made = environment(lstrip_blocks=True, autoescape=False, extensions=["jinja2.ext.do"])
    return made.from_string(shipped_text(f"report/templates/{name}"))


def environment(**options: Any) -> jinja2.Environment:
    """What fills our templates, with the filters and functions that they use."""
    made = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, **options)
    made.filters |= {
        "agent_name": agent_name, "at_budget": at_budget, "md": escape_markdown, "tex": escape_tex,
        "of_kind": lambda rows, *kinds: [row for row in rows if type(row).__name__ in kinds],
    }  # fmt: skip
    made.tests["published"] = lambda row: (row.r_min, row.r_max) == published_scale(row.game, row.mode)
    made.globals |= {
        "counted": counted, "listed": listed, "is_number": is_number,
        "word": lambda count: "none" if count == 0 else count_word(count).plain,
        "number": lambda value, decimals=2, sign=False: fixed(value, decimals, sign=sign).plain,
        "estimate": lambda value, ends: estimate(value, ends).plain,
        "mean_sem": lambda mean, sem: mean_sem(mean, sem).plain,
        "p_value": lambda p: p_value(p).plain,
        "call_words": lambda call: formatted("call_words", call).plain,
    }  # fmt: skip
    return made


def listed(values: Iterable[object]) -> str:
    """Values as a sentence lists them.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed([])
    ('a', 'a, b and c', 'nothing')
    """
    names = [str(value) for value in values]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else (names or ["nothing"])[0]
