"""Real files, the TOON datasets and the peer inputs: each comes back exactly and has the rows that its content has.

What is expected here was found by looking at the files (json, csv, grep), never by running the product: the values
are compared with what Python's own `json` and `csv` read, the row counts were written down by hand (H5-H13, H21-H23).
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import hyve
from hyve.strictjson import Pairs
from tests.unit.corpus_rows import EXPECTED, MENDED
from tests.unit.documents import fetched

CORPUS = Path(os.environ.get("HYVE_CORPUS", ""))
pytestmark = pytest.mark.skipif(
    not os.environ.get("HYVE_CORPUS"), reason="HYVE_CORPUS is not set: the corpus of real files is not checked"
)

PEERS = [name.removeprefix("peers/") for name in EXPECTED if name.startswith("peers/")]
SPECIAL = frozenset({"repaired", "duplicate_keys", "truncated", "python_literal", "non_finite", "lone_surrogate",
                     "rounded_number", "number_as_text", "too_deep", "ragged_rows", "bom", "invalid_utf8"})  # fmt: skip


@dataclass(frozen=True)
class Loaded:
    name: str
    text: str
    document: hyve.Document
    store: hyve.Datastore

    @property
    def values(self) -> list[Any]:
        """The values of the parts that are no free text."""
        return [part.value for part in self.document.parts if part.syntax != "lines"]


def path_of(name: str, peers: Path | None = None) -> Path:
    kind, _, rest = name.partition("/")
    if kind == "peers":
        assert peers is not None
        return peers / rest
    if kind == "toon":
        version, _, stem = rest.partition("/")
        return CORPUS / "toon" / version / "datasets" / f"{stem}.json"
    return CORPUS / "real" / name


def load(path: Path, name: str) -> Loaded:
    source = path.read_bytes()
    document = hyve.parse(source)
    return Loaded(name, source.decode(), document, hyve.Datastore.from_document(document))


@pytest.fixture(scope="session")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    maker = CORPUS.parent / "bench" / "peers" / "make_inputs.py"
    if not maker.is_file():
        pytest.skip(f"{maker} is not there: the peer inputs are not checked")
    folder = tmp_path_factory.mktemp("peers")
    environment = {key: value for key, value in os.environ.items() if key != "SEED"}
    subprocess.run([sys.executable, str(maker), str(folder)], check=True, capture_output=True, env=environment)
    return folder


@pytest.fixture(scope="module", params=list(EXPECTED))
def loaded(request: pytest.FixtureRequest) -> Iterator[Loaded]:
    """One file, parsed and stored once for all tests of this module."""
    name: str = request.param
    folder = request.getfixturevalue("peers") if name.startswith("peers/") else None
    found = load(path_of(name, folder), name)
    yield found
    found.store.close()


def difference(got: Any, want: Any) -> str | None:
    """Where two values differ first (in type, key order, number type or float bits), else None."""
    if type(got) is not type(want):
        return f": {type(got).__name__} {got!r:.80} is not {type(want).__name__} {want!r:.80}"
    if type(want) is dict:
        if list(got) != list(want):
            return f": keys {list(got)!r:.200} are not {list(want)!r:.200}"
        steps: Any = ((key, got[key], want[key]) for key in want)
    elif isinstance(want, list | tuple):
        if len(got) != len(want):
            return f": {len(got)} items are not {len(want)}"
        steps = ((i, *pair) for i, pair in enumerate(zip(got, want, strict=True)))
    elif type(want) is float:
        return None if got.hex() == want.hex() else f": {got!r} is not {want!r}"
    else:
        return None if got == want else f": {got!r:.120} is not {want!r:.120}"
    for step, left, right in steps:
        if (found := difference(left, right)) is not None:
            return f".{step}{found}"
    return None


def test_difference_sees_what_equality_does_not() -> None:
    assert difference({"a": [1, 2.0, None, "x"]}, {"a": [1, 2.0, None, "x"]}) is None
    assert difference([float("nan")], [float("nan")]) is None
    assert difference(Pairs([("a", 1), ("a", 2)]), Pairs([("a", 1), ("a", 2)])) is None
    for got, want in (
        (1, 1.0),
        (0.0, -0.0),
        (True, 1),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": None}, {}),
        ([], {}),
        (Pairs([("a", 1)]), {"a": 1}),
        (Pairs([(1, 1)]), Pairs([(True, 1)])),
    ):
        assert difference(got, want) is not None, (got, want)
    assert difference({"a": [{"b": 1}]}, {"a": [{"b": 2}]}) == ".a.0.b: 1 is not 2"


def read_json(text: str) -> list[Any]:
    """The documents that Python's own reader finds in a text of nothing but JSON; [] for any other text."""

    def keep(pairs: list[tuple[str, Any]]) -> Any:
        value = dict(pairs)
        return value if len(value) == len(pairs) else Pairs(pairs)

    decoder, at = json.JSONDecoder(object_pairs_hook=keep), 0
    found: list[Any] = []
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
        elif text[at] in "{[":
            try:
                value, at = decoder.raw_decode(text, at)
            except ValueError:
                return []
            found.append(value)
        else:
            return []
    return found


def json_on_its_own_lines(text: str) -> list[Any]:
    """Documents that start at the start of a line and end at the end of one, in a text that holds other lines too."""
    decoder, at = json.JSONDecoder(), 0
    found: list[tuple[Any, int]] = []
    for line in text.split("\n"):
        start, end = at, at + len(line) + 1
        if line[:1] in ("{", "[") and (not found or start >= found[-1][1]):
            try:
                value, stop = decoder.raw_decode(text, start)
            except ValueError:
                value = None
            if value and not text[stop : text.find("\n", stop) % (len(text) + 1)].strip():
                found.append((value, stop))
        at = end
    return [value for value, _ in found]


def test_the_corpus_is_all_there() -> None:
    real = {str(path.relative_to(CORPUS / "real")) for path in CORPUS.glob("real/*/*") if path.is_file()}
    toon = {f"toon/{path.parts[-3]}/{path.stem}" for path in CORPUS.glob("toon/*/datasets/*.json")}
    assert (len(real), len(toon), len(PEERS)) == (52, 24, 8)
    assert set(EXPECTED) == real | toon | {f"peers/{name}" for name in PEERS}


def test_every_part_comes_back_from_the_tables(loaded: Loaded) -> None:
    """Invariant 1: key order, types and float bits included."""
    assert loaded.document.parts
    for i, part in enumerate(loaded.document.parts):
        found = difference(loaded.store.reconstruct(i), part.value)
        assert found is None, f"part {i}{found}"


def test_parts_are_what_pythons_own_readers_read(loaded: Loaded) -> None:
    text = loaded.text
    if loaded.name in MENDED:
        broken, mended = MENDED[loaded.name]
        assert text.count(broken) == 1
        text = text.replace(broken, mended)
    if loaded.name.endswith(".csv"):
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        assert difference(loaded.values, [[dict(zip(header, row, strict=True)) for row in rows]]) is None
        return
    whole = read_json(text)
    if whole:
        found = difference(loaded.values, whole)
        assert found is None, found
        return
    pool = iter(loaded.values)
    for value in json_on_its_own_lines(text):
        assert any(difference(candidate, value) is None for candidate in pool), f"not found: {value!r:.200}"


def test_flags_say_what_was_met_and_nothing_else(loaded: Loaded) -> None:
    """H8: nothing is repaired silently, and no flag cries wolf: `"NaN"` in a string is text."""
    met: set[str] = set()

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) != len(items):
            met.add("duplicate_keys")
        for item in (text for pair in items for text in pair if type(text) is str):
            if re.search("[\ud800-\udfff]", item):
                met.add("lone_surrogate")
        return value

    def real(digits: str) -> float:
        if Decimal(digits) != Decimal(repr(float(digits))):
            met.add("rounded_number")
        return float(digits)

    def constant(_: str) -> float:
        met.add("non_finite")
        return 0.0

    if loaded.name in MENDED:
        met.add("repaired")
    elif loaded.name in ("logs/ansi-holmes-runner.txt", "peers/f_mixed.txt"):
        met.add("python_literal")
        met |= {"truncated"} if loaded.name == "peers/f_mixed.txt" else set()
    elif not loaded.name.endswith(".csv") and read_json(loaded.text):
        decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_float=real, parse_constant=constant)
        at = 0
        while at < len(loaded.text.rstrip()):
            _, at = decoder.raw_decode(loaded.text, re.compile(r"\s*").match(loaded.text, at).end())  # type: ignore[union-attr]
    assert set(loaded.document.flags) & SPECIAL == met


def test_lines_hold_all_text_that_no_part_covers(loaded: Loaded) -> None:
    text, covered = loaded.text, sorted(part.span for part in loaded.document.parts if part.syntax != "lines")
    assert all(left[1] <= right[0] for left, right in pairwise(covered)), "parts overlap"
    pieces: dict[int, str] = {}
    number, at = 1, 0
    for start, end in [*covered, (len(text), len(text))]:
        for i, piece in enumerate(text[at:start].split("\n"), number):
            if piece.strip():
                pieces[i] = pieces.get(i, "") + piece
        number, at = number + text.count("\n", at, end), end
    found = []
    if loaded.store.catalog.table("lines") is not None:
        found = fetched(loaded.store, "SELECT line, text FROM lines")
    assert [line for line, _ in found] == list(pieces)
    whole = text.split("\n")
    assert all(shown.strip() in (whole[i - 1].strip(), pieces[i].strip()) for i, shown in found)


def count(store: hyve.Datastore, key: str) -> int | str:
    """The number of rows that a key of EXPECTED means, or what stands in the way of telling it."""
    if key.startswith("SELECT"):
        try:
            return int(str(store.query(key).rows[0][0]))
        except hyve.HyveError as error:
            return str(error)
    if key.endswith("?"):
        holders = {t: c.name for t in store.catalog.tables for c in reversed(t.columns) if c.path == key[:-1]}
        found = {table: f'"{column}"' for table, column in holders.items() if table.kind != "relation"}
    elif not set(key) & set("$[*."):
        kinds = ("base", "derived") if key == "lines" else ("relation",)
        found = {t: "*" for t in store.catalog.tables if t.name == key and t.kind in kinds}
    else:
        wanted = re.compile(re.escape(key).replace(r"\*", r"[^\[\]]+"))
        tables = [t for t in store.catalog.tables if t.kind != "relation" and (t.path != "$" or key == "$")]
        found = {t: "*" for t in tables if wanted.fullmatch(t.path.lstrip("."))}
    if {table.path for table in found} != {"$"} and len(found) != 1:  # only roots may be several tables
        return f"in the tables {[table.name for table in found]}"
    counts = [int(fetched(store, f'SELECT count({what}) FROM "{table.name}"')[0][0]) for table, what in found.items()]
    told = [table.rows for table, what in found.items() if what == "*"]
    return sum(counts) if told in ([], counts) else f"{counts} rows, the catalog says {told}"


def test_tables_have_the_rows_that_the_file_has(loaded: Loaded) -> None:
    expected = EXPECTED[loaded.name]
    assert {key: count(loaded.store, key) for key in expected} == expected
