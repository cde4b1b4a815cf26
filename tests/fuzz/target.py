"""What holds for every input of `hyve.parse` and the store, and inputs to try it with: seeds, and mutations of them.

Rules:
- `check` raises AssertionError, or whatever the library raised, for an input that breaks a promise; it returns for all
  others, those that the library refuses with an InputError among them.
- Each seed is one syntax, format or malformation, made for this purpose.
- `mutated` works on tokens, since few random bytes make anything that a parser looks at twice. The same random state
  gives the same input.
"""

from __future__ import annotations

import ast
import re
import resource
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from hyve import Datastore, Document, InputError, parse
from tests.unit.documents import fetched

HERE = Path(__file__).parent
MOST_BYTES = 64 * 1024
SECONDS = 2.0
"""Processor time that an input of at most MOST_BYTES may take."""
MEGABYTES = 256
"""By how much such an input may raise the process's peak of memory."""


def seeds() -> list[Path]:
    """The files of the seed corpus."""
    return sorted((HERE / "seeds").iterdir())


def tokens() -> list[bytes]:
    """The tokens of the dictionary, which is in libFuzzer's format: a quoted text with escapes on each line."""
    lines = (HERE / "tokens.dict").read_text(encoding="ascii").splitlines()
    return [ast.literal_eval(f"b{line}") for line in lines if line.startswith('"')]


def same(a: Any, b: Any) -> bool:
    """Equal with types, key order, float bits and NaN."""
    return type(a) is type(b) and repr(a) == repr(b)


_FENCE = re.compile(r"\s*```[\w+.-]*\s*\Z")


def lost(document: Document) -> str:
    """The text, blanks left out, that no part has read and no line holds; and `!` before a line that is made up.

    Code fences around short texts are dropped, and said to be.
    """
    text = document.text
    newline = "\r" if "\r" in text and "\n" not in text else "\n"
    long = [part for part in document.parts if part.syntax == "lines"]
    kept = {row["line"]: row["text"] for part in long for row in part.value} or dict(document.lines)
    pieces: dict[int, str] = {}
    number, at = 1, 0
    spans: list[tuple[int, int]] = []
    for part in document.parts:
        begun, end = part.span
        for unread in part.unread:
            spans.append((begun, unread.start))
            begun = unread.end
        spans += [(begun, end)] if part.syntax != "lines" else []
    for start, end in [*spans, (len(text), len(text))]:
        for n, piece in enumerate(text[at:start].split(newline), number):
            if piece.strip() and (long or not _FENCE.match(piece)):
                pieces[n] = pieces.get(n, "") + piece
        number += text.count(newline, at, end)
        at = end
    whole = text.split(newline)
    for n, piece in pieces.items():
        if n not in kept or "".join(kept[n].split()) not in ("".join(piece.split()), "".join(whole[n - 1].split())):
            return "".join(piece.split())
    return next((f"!{line}" for n, line in kept.items() if n not in pieces), "")


def check(data: bytes) -> None:
    """Parses, stores and reads back `data`."""
    began, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        document = parse(data, "input")
    except InputError:
        return
    assert not lost(document), f"text is lost: {lost(document)[:200]!r}"
    at = 0
    for part in document.parts:
        assert 0 <= part.span[0] < part.span[1] <= len(document.text), f"span {part.span}"
        assert part.syntax == "lines" or at <= part.span[0], f"spans overlap at {part.span}"
        at = part.span[1]
        places = [part.span[0], *(place for unread in part.unread for place in unread[:2]), part.span[1]]
        assert places == sorted(places), f"{part.unread} are not in order in {part.span}"
        assert all(unread.start < unread.end and unread.reason for unread in part.unread), f"{part.unread}"
        assert bool(part.unread) <= ("unparsed" in part.flags), f"{part.unread} and {part.flags}"
        assert set(part.flags) <= set(document.flags), f"flags {part.flags} of a part are not those of its document"
        assert bool(part.partial_tail) == ("partial_tail" in part.flags), f"{part.partial_tail!r} and {part.flags}"
    with Datastore.from_document(document) as store:
        assert store.catalog.tables or not (document.parts or document.lines), "no table"
        for i, part in enumerate(document.parts):
            back = store.reconstruct(i)
            assert same(back, part.value), f"part {i} was {part.value!r:.300} and came back as {back!r:.300}"
        for table in store.catalog.tables:
            ((count,),) = fetched(store, f'SELECT count(*) FROM "{table.name.replace(chr(34), chr(34) * 2)}"')
            assert count == table.rows, f"{table.name} has {count} rows, its catalog entry says {table.rows}"
    if len(data) <= MOST_BYTES:
        taken = time.process_time() - began
        assert taken < SECONDS, f"took {taken:.1f} s"
        unit = 1 << (20 if sys.platform == "darwin" else 10)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) // unit
        assert grown < MEGABYTES, f"took {grown} MB"


_TOKEN = re.compile(rb"\s+|[A-Za-z_]+|\d+|.", re.DOTALL)


def mutated(data: bytes, random: Random, others: list[bytes], words: list[bytes]) -> bytes:
    """`data` after a few changes to its tokens; `others` are inputs to take runs of tokens from."""
    for _ in range(random.choice((1, 1, 2, 4))):
        found = _TOKEN.findall(data)
        if not found:
            return random.choice(others)
        at = random.randrange(len(found))
        run = slice(at, at + random.choice((1, 1, 2, 5, 20)))
        match random.randrange(10):
            case 0:
                del found[run]
            case 1:
                found[at:at] = found[run] * random.choice((1, 2, 30))
            case 2:
                found[at : at + 1] = [random.choice(words)]
            case 3:
                found.insert(at, random.choice(words))
            case 4:
                other = random.randrange(len(found))
                found[at], found[other] = found[other], found[at]
            case 5:
                del found[at:]
            case 6:
                source = _TOKEN.findall(random.choice(others))
                begin = random.randrange(len(source))
                found[at:at] = source[begin : begin + random.choice((1, 5, 50, 500))]
            case 7:  # nested, as a list or as an object's field
                before, after = random.choice(((b"[", b"]"), (b'{"k": ', b"}"), (b"(", b")"), (b"```\n", b"\n```\n")))
                depth = random.choice((1, 1, 3, 199, 220))
                found = [before * depth, *found, after * depth]
            case 8:  # the whole as a string
                escaped = b"".join(found).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
                found = [b'{"text": "', escaped, b'"}'] if random.random() < 0.7 else [b'"', escaped, b'"']
            case _:
                place = random.randrange(len(found[at]))
                found[at] = found[at][:place] + bytes([random.randrange(256)]) + found[at][place + 1 :]
        data = b"".join(found)[:MOST_BYTES]
    return data
