"""Damaged copies of a file, each determined by a number: flipped, cut, repeated and spliced bytes, and odd values.

Bytes alone rarely get past a checksum, so archives are also taken apart, changed inside, and packed again, and JSON
gets values of other types.
"""

from __future__ import annotations

import copy
import io
import json
import random
import re
import warnings
import zipfile
from typing import Any

#: Values that programs forget about.
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 10**400, 1e308, float("inf"), float("nan"), "", "\0",
    "x" * 3000, "../..", [], {}, [[]], [None], [-1], [0], [2**40], {"": 0}, {":type:": "<class 'int'>"},
    "<class 'os.system'>", "\ud800", "\x1b[2J", "=1+1", "{{7*7}}", "<b>", 0.1, -0.0,
)  # fmt: skip


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four changes."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        changed = _change(changed, rng)
    return bytes(changed)


def _change(content: bytearray, rng: random.Random) -> bytearray:
    if not content:
        return bytearray(rng.randbytes(rng.randint(0, 64)))
    at = rng.randrange(len(content))
    # Headers and directories are short; most changes should hit them.
    if rng.random() < 0.5:
        at = rng.choice((min(at, 200), max(0, len(content) - 1 - min(at, 400))))
    length = min(rng.choice((1, 1, 2, 4, 8, 64, 1024)), len(content) - at)
    kind = rng.randrange(7)
    if kind == 0:
        content[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        content[at : at + length] = rng.randbytes(length)
    elif kind == 2:
        content[at : at + length] = rng.choice((b"\0", b"\xff", b"\x7f")) * length
    elif kind == 3:
        del content[at : at + length]
    elif kind == 4:
        content[at:at] = content[at : at + length]
    elif kind == 5:
        return content[:at]
    else:
        other = rng.randrange(len(content))
        content[at : at + length] = content[other : other + length]
    return content


def mutate_json(content: bytes, rng: random.Random) -> bytes:
    """JSON with one to three of its values replaced or removed."""
    document = json.loads(content)
    for _ in range(rng.randint(1, 3)):
        _change_value(document, rng)
    return json.dumps(document).encode()


def _change_value(document: Any, rng: random.Random) -> None:
    while isinstance(document, (dict, list)) and document:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        key = rng.choice(keys)
        inner = document[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.7:
            document = inner
            continue
        if rng.random() < 0.15:
            del document[key]
        else:
            # A copy: the next change may be inside it, and the odd values must stay as they are.
            document[key] = copy.deepcopy(rng.choice(ODD_VALUES))
        return


def mutate_zip(content: bytes, rng: random.Random) -> bytes:
    """An archive with one entry changed and packed again with the right checksum."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    number = rng.randrange(len(entries))
    name, inner = entries[number]
    kind = rng.randrange(8)
    if kind == 0:
        del entries[number]
    elif kind == 1:
        entries.append((name, mutate_bytes(inner, rng)))
    elif kind == 2:
        entries[number] = (rng.choice((name.upper(), "", "/", name + "/", "../" + name, name[:-1])), inner)
    elif inner[:2] == b"PK" and rng.random() < 0.7:
        entries[number] = (name, mutate_zip(inner, rng))
    elif inner[:1] == b"{" and rng.random() < 0.8:
        entries[number] = (name, mutate_json(inner, rng))
    else:
        entries[number] = (name, mutate_bytes(inner, rng))
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", rng.choice((0, 0, 8))) as archive:
        warnings.simplefilter("ignore")
        for each, inner in entries:
            archive.writestr(each or "_", inner)
    return buffer.getvalue()


def mutate_safetensors(content: bytes, rng: random.Random) -> bytes:
    """A safetensors file with a changed header."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if rng.random() < 0.5:
        own = mutate_json(header["__metadata__"]["gapfloor"].encode(), rng)
        header["__metadata__"]["gapfloor"] = own.decode()
    else:
        _change_value(header, rng)
    changed = json.dumps(header).encode()
    return len(changed).to_bytes(8, "little") + changed + content[8 + length :]


#: What a line of TOML, CSV, Markdown or Python can hold where something else is expected.
ODD_TEXTS = (
    "", "-1", "0", "9" * 5000, "1e999", "nan", "inf", "-inf", "1e-400", "0x", "true", "None", "'", '"', '"""',
    "[[", "]]", "{", "}", "(" * 300, "[" * 3000, "a." * 500, "=", "==", ",", ";" * 50, "\t", "\0", "\ufeff",
    "\u202e", "é" * 40, "lambda: ", "*", "**", "@", "#", "|", "\\", "\n\n", "x" * 5000, "../" * 50, "/dev/zero",
    "<script>", "import os\n", "yield ", "await ", "{x!r:{x}}", "2**2**2**2**99", "\r", "[x for x in x]",
    "global x\n", "match x:\n case _: pass\n", "1_0", "0:0", "-5:5", "all",
)  # fmt: skip
_TOKENS = re.compile(r"\w+|[^\w\s]|\s+")


def mutate_text(text: str, rng: random.Random) -> bytes:
    """Text with one to four of its words or lines replaced, repeated, moved or removed."""
    for _ in range(rng.randint(1, 4)):
        by_line = rng.random() < 0.4
        parts = text.splitlines(keepends=True) if by_line else _TOKENS.findall(text)
        if not parts:
            return rng.choice(ODD_TEXTS).encode()
        at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        kind = rng.randrange(5)
        if kind == 0:
            del parts[at]
        elif kind == 1:
            parts.insert(other, parts[at])
        elif kind == 2:
            parts[at], parts[other] = parts[other], parts[at]
        elif kind == 3:
            parts[at] = rng.choice(ODD_TEXTS)
        else:
            parts[at] = parts[at] * rng.choice((2, 3, 500))
        text = "".join(parts)
    return text.encode()


#: What can be typed where something else is expected. No number among them is a large amount of sound work.
ODD_WORDS = (
    "", "-", "--", "-1", "0", "1.5", "9" * 5000, "1e999", "nan", "inf", "1e-400", "2**63", str(2**63), "٣", "\0",
    "\x1b[2J", "\udcff", "é" * 300, "x" * 5000, "../..", "/", ".", "~", "/dev/null", "/dev/zero", "nothing.csv", "a=b",
    "=", "a,b", ",", "0:0", "-5:5", "5:1", "none", "paper", "sb3:", "onnx:.", "hf:a/b c", "hf:", "gym:", "gym:nothing",
    "a.b:c", "os:system", "{0}", "%s", "--json", "--wide", "--help", "--out", "--plan", "--store", "--traceback",
    "-q", "episodes.csv", "store", "plan.toml", "repo", "temperature:nan", "epsilon:2", "merged", "own", "*", "[a", "@",
)  # fmt: skip


def mutate_words(words: list[str], rng: random.Random) -> list[str]:
    """A command line with one to three of its words replaced, repeated, removed, swapped or damaged."""
    words = list(words)
    for _ in range(rng.randint(1, 3)):
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        kind = rng.randrange(8)
        if kind <= 2 and len(words) > 1:
            words[max(at, 1)] = rng.choice(ODD_WORDS)
        elif kind == 3:
            words.insert(at + 1, rng.choice(ODD_WORDS))
        elif kind == 4 and len(words) > 1 and "--workers" not in words[at - 1 : at + 1]:
            del words[at]
        elif kind == 5:
            words[at], words[other] = words[other], words[at]
        elif kind == 6:
            words.insert(other, words[at])
        else:
            words[at] = mutate_bytes(words[at].encode("utf-8", "surrogateescape"), rng).decode(
                "utf-8", "surrogateescape"
            )
    return words


def mutant(content: bytes, number: int) -> bytes:
    """The damaged copy with this number."""
    rng = random.Random(number)
    if rng.random() < 0.5:
        try:
            if content[:2] == b"PK":
                return mutate_zip(content, rng)
            if content[8:9] == b"{":
                return mutate_safetensors(content, rng)
            if content[:1] == b"{":
                return mutate_json(content, rng)
            return mutate_text(content.decode(), rng)
        except (zipfile.BadZipFile, ValueError, KeyError, RecursionError):
            pass
    return mutate_bytes(content, rng)
