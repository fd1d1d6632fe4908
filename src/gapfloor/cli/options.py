"""Options that several commands share, so that they are spelled and explained in the same way everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from gapfloor.engines.engine import Option
from gapfloor.errors import UsageError
from gapfloor.play.protocol import INFERENCE_BATCH
from gapfloor.policies.backends import BACKENDS
from gapfloor.records.store import DEFAULT_STORE, store_folder

#: Raised when a field of a document on standard output goes or changes its meaning; new fields do not raise it.
JSON_SCHEMA = "gapfloor/1"

F = TypeVar("F", bound=Callable[..., Any])


def expand_store(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The folder behind `--store`, before anything is done: `~` is filled in, an address is refused."""
    return None if value is None else str(store_folder(value))


def store_option(function: F) -> F:
    """`--store DIR`, alias `--out`."""
    return click.option(
        "--store", "--out", "store", default=DEFAULT_STORE, show_default=True, envvar="GAPFLOOR_STORE",
        callback=expand_store,
        help="Folder that keeps the cells; run the same command again to do only what is missing.",
    )(function)  # fmt: skip


def json_option(function: F) -> F:
    """`--json`: one document on standard output."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def allow_option(function: F) -> F:
    """`--allow NAME`: code that a store names and the user knows."""
    return click.option(
        "--allow", "allowed", multiple=True, metavar="MODULE:NAME",
        help="Code that the store names and that may be imported, e.g. mine.envs:make; may be repeated.",
    )(function)  # fmt: skip


def workers_option(function: F) -> F:
    """`--workers N`."""
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=None,
        help="Number of worker processes (default: one per core).",
    )(function)


def protocol_options(function: F) -> F:
    """Mode, options, level sets, draws and the design of a cell."""
    decorators = [
        click.option("--mode", default=None, help="ProcGen's easy (default), hard, extreme, memory or exploration."),
        click.option(
            "--option", "options", multiple=True, metavar="NAME=VALUE", callback=_read_options,
            help="An option of the engine, e.g. use_backgrounds=false; may be repeated.",
        ),
        click.option("--train", default="0:200", show_default=True, help="Training levels: START:STOP, all or none."),
        click.option(
            "--test", default="1000:1100", show_default=True, help="Held-out levels, in the same form as --train."
        ),
        click.option(
            "--design", type=click.Choice(["draws", "census"]), default="draws", show_default=True,
            help="Seeded draws of levels (as in the paper), or every level equally often.",
        ),
        click.option("--repeats", type=int, default=1, show_default=True, help="Episodes per level in a census."),
        click.option(
            "--draws", default="0,1,2", show_default=True, callback=_read_draws,
            help="Seeds of the level draws, e.g. 0,1,2.",
        ),
        click.option("--episodes", type=int, default=128, show_default=True, help="Counted episodes per draw."),
        click.option("--slots", type=int, default=16, show_default=True, help="Parallel environments per draw."),
        click.option(
            "--burn-in", type=int, default=1, show_default=True, help="First episodes of a slot that are not counted."
        ),
    ]  # fmt: skip
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def inference_options(function: F) -> F:
    """`--device`, `--backend` and `--batch`: where, by which library and in which shape logits are computed."""
    device = click.option(
        "--device", default="cpu", show_default=True, help="Device for networks: cpu or cuda."
    )
    batch = click.option(
        "--batch",
        type=int,
        default=INFERENCE_BATCH,
        show_default=True,
        help="Inference batch size. Changing it changes the cell key.",
    )
    backend = click.option(
        "--backend",
        type=click.Choice(BACKENDS),
        default=None,
        help="Library for the logits of gapfloor checkpoints (default: the one that filled the store, or onnxruntime "
        "where it is installed). Changing it changes the cell key.",
    )
    return device(backend(batch(function)))


def playing_options(function: F) -> F:
    """What commands share that play policies into a store and write their own results elsewhere (`--out`)."""
    store = click.option(
        "--store", default=DEFAULT_STORE, show_default=True, envvar="GAPFLOOR_STORE", callback=expand_store,
        help="Folder that keeps the cells; run the same command again to do only what is missing.",
    )  # fmt: skip
    return protocol_options(inference_options(workers_option(store(json_option(function)))))


def reference_option(*, default: tuple[str, ...] = ()) -> Callable[[F], F]:
    """`--reference NAME`, which may be repeated."""
    return click.option(
        "--reference", "references", multiple=True, default=default, show_default=bool(default), metavar="NAME",
        help="uniform (the floor), zero, constant:A, best-constant, sticky:P, random-weights:ENCODER:COUNT, blind:RUN "
        "or upper:POLICY; may be repeated.",
    )  # fmt: skip


def parse_integers(text: str, *, what: str) -> list[int]:
    """Read `0,1,2`."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"'{text}' is not a list of {what}: write whole numbers with commas, e.g. 0,1,2."
        ) from None


def parse_engine_options(pairs: tuple[str, ...]) -> dict[str, Option]:
    """Read `NAME=true`, `NAME=false` and, for engines that take them, `NAME=3` or `NAME=word`."""
    words = {"true": True, "false": False}
    options: dict[str, Option] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name or not value:
            raise UsageError(f"'{pair}' is not an engine option: write NAME=true or NAME=false.")
        options[name] = words[value.lower()] if value.lower() in words else _scalar(value)
    return options


def _read_options(
    context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, Option]:
    return parse_engine_options(pairs)


def _read_draws(context: click.Context, parameter: click.Parameter, text: str) -> list[int]:
    return parse_integers(text, what="draws")


def _scalar(text: str) -> Option:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document on standard output, with the version of its schema."""
    click.echo(json.dumps(with_schema(document), indent=1, allow_nan=False))


def with_schema(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the version of its schema as its first field.

    >>> with_schema({"games": []})
    {'schema': 'gapfloor/1', 'games': []}
    """
    return {"schema": JSON_SCHEMA, **document}
