r"""Rows -> the slots of a JSON template: Mode 2's last step, so that no value passes through a model
(H27-H29, H33).

A mapping says: for each row, the value of `column` goes to `path`. The grammar of a path:

    path    = step *( "." step / "[" ( digits / column ) "]" )
    step    = column / key
    column  = "(" name ")"         ; this row's value of the column `name` is the index or key
    key     = 1*( char / escape )  ; a key of an object or, if all digits, an index of a list
    name    = 1*( char / escape )
    escape  = "\" any              ; the character itself: "a\.b" is one key, "\(x\)" a key in parentheses
    char    = any but  . ( ) [ ] \ ; inside of a name only ( ) \ must be escaped

`chart.list.(series_idx).data.(_row_id).y` fills `y` of the point `_row_id` of the series `series_idx`.
`_row_id` is the row's number from 0 where the statement has no column of that name.

Rules:
- All or nothing: the template is copied, never changed; any misfit is a BackfillError that names path,
  column, row.
- Integers are list indexes from 0 where the container is a list or not there yet, else keys; texts are keys.
  A list must come out without gaps.
- A key that is written out must stand in the template where the template has keys at that place: a mistyped one
  would leave the chart empty. Empty objects and lists, null, and what rows made are filled with any key. The last key
  of a path may be missing where another mapping of the same fill writes to a key that stands in the same object, and
  no key there is within two letters of it: `name` beside `data`.
- Items that a template holds behind the last one that rows filled by a (column) are placeholders: they are removed.
- What is missing on the way (or null) is made: a list before an index, an object before a key. What is there
  already keeps its other content. At the end of a path rows replace a scalar, never a filled container; on the way
  they replace nothing but null.
- Two rows may say the same of one place, never two different things.
- NaN and infinities of numeric columns become null: charts have no other gap.
- At most `MAX_VALUES` values and `MAX_BYTES` bytes are filled in.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from hyve import cells
from hyve.errors import BackfillError

if TYPE_CHECKING:
    from hyve.reply import FillMapping
    from hyve.sql import QueryResult

MAX_STEPS = 64
"""Steps of the longest path."""

MAX_VALUES = 1_000_000
"""Values of all fills together: rows times mappings."""

MAX_BYTES = 64 << 20
"""Size of what is filled in, roughly as JSON."""

ROW_NUMBER = "_row_id"
"""Stands for the row's number where the rows have no such column."""

_SLACK = 64

_DATA = frozenset({"data", "values", "value", "x", "y", "z", "v", "series", "points", "source", "rows", "count"})
"""Keys under which the templates of charts hold their data."""


@dataclass(frozen=True)
class Step:
    """One step of a path: the value of `column`, else `key`.

    `index` marks a key of bare digits, which may be a list's index.
    """

    key: str = ""
    column: str | None = None
    index: bool = False


def parse_path(path: str) -> tuple[Step, ...]:
    """The steps of `path` (grammar above); BackfillError names the character where it goes wrong."""
    steps: list[Step] = []
    at = 0
    while True:
        step, at = _step(path, at)
        steps.append(step)
        while path[at : at + 1] == "[":
            step, at = _step(path, at + 1, closing="]")
            if step.column is None and not step.index:
                raise BackfillError(f"path {path!r}: [{step.key}] is neither an index nor a (column)")
            steps.append(step)
        if len(steps) > MAX_STEPS:
            raise BackfillError(f"path {path[:80]!r}...: more than {MAX_STEPS} steps")
        if at == len(path):
            return tuple(steps)
        if path[at] != ".":
            raise BackfillError(f"path {path!r}: expected '.' at character {at}, found {path[at]!r}")
        at += 1


_KEY = re.compile(r"(?:[^.()\[\]\\]|\\.)+", re.DOTALL)
_NAME = re.compile(r"\(((?:[^()\\]|\\.)+)\)", re.DOTALL)


def _step(path: str, at: int, closing: str = "") -> tuple[Step, int]:
    column = _NAME.match(path, at)
    match = column or _KEY.match(path, at)
    if match is None:
        what = "ends where a key or a (column) should stand" if at >= len(path) else "no key or (column)"
        raise BackfillError(f"path {path!r}: {what} at character {at}; escape . ( ) [ ] in a key by a backslash")
    end = match.end()
    if closing:
        if path[end : end + 1] != closing:
            raise BackfillError(f"path {path!r}: the bracket before character {at} is not closed")
        end += 1
    if column is not None:
        return Step(column=re.sub(r"\\(.)", r"\1", column[1], flags=re.DOTALL)), end
    text = match.group()
    return Step(
        key=re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL), index=re.fullmatch("[0-9]{1,9}", text) is not None
    ), end


class _Gap:
    """Marks a slot of a list that no row has filled yet."""


_GAP = _Gap()
_MISSING = _Gap()


@dataclass(frozen=True)
class Filled:
    """What `complete` made. `own` counts the numbers of its data that were the template's, `surplus` the placeholders
    that were removed."""

    value: Any
    own: int = 0
    surplus: int = 0


@dataclass(frozen=True)
class _Filler:
    """One mapping, its columns found."""

    path: str
    column: str
    steps: tuple[Step, ...]
    source: int
    columns: tuple[int, ...]
    """For each step the number of its column, -1 for a key, -2 for the row's number."""
    numeric: bool
    """Whether a text of its column stands for NaN or an infinity."""
    beside: frozenset[tuple[tuple[Step, ...], str]] = frozenset()
    """Where the mappings of the same fill write: the steps before a written key, and the key."""

    def value(self, row: tuple[Any, ...]) -> Any:
        value = row[self.source]
        return None if self.numeric and isinstance(value, str) else value

    def fail(self, row: int, why: str) -> BackfillError:
        return BackfillError(f"path {self.path!r}, column {self.column!r}, row {row}: {why}")


def fill(template: Any, rows: Sequence[tuple[QueryResult, Sequence[FillMapping]]]) -> Any:
    """A copy of `template` with every mapping of every result filled in. BackfillError where one misfits."""
    return complete(template, rows).value


def complete(template: Any, rows: Sequence[tuple[QueryResult, Sequence[FillMapping]]]) -> Filled:
    """`fill`, and what of the outcome no row gave."""
    if not isinstance(template, (dict, list)):
        raise BackfillError(f"the template is {type(template).__name__}; it must be an object or a list")
    work: list[tuple[QueryResult, list[_Filler]]] = []
    for result, mappings in rows:
        if result.total_rows > len(result.rows):
            raise BackfillError(
                f"the statement gives {result.total_rows} rows and only {len(result.rows)} can be filled in; "
                f"aggregate further: {result.sql[:200]}"
            )
        fillers = [_filler(mapping.column, mapping.path, result) for mapping in mappings]
        beside = frozenset(
            (filler.steps[:i], step.key)
            for filler in fillers
            for i, step in enumerate(filler.steps)
            if step.column is None
        )
        work.append((result, [replace(filler, beside=beside) for filler in fillers]))
    count = sum(len(result.rows) * len(fillers) for result, fillers in work)
    if count > MAX_VALUES:
        raise BackfillError(f"{count:,} values are to be filled in, the limit is {MAX_VALUES:,}; aggregate further")
    try:
        filled = copy.deepcopy(template)
        filling = _Filling(filled, work)
        for result, fillers in work:
            for number, row in enumerate(result.rows):
                for filler in fillers:
                    filling.put(filled, filler, number, row)
    except RecursionError:
        raise BackfillError("the template or a value is nested too deeply") from None
    filling.check()
    surplus = filling.trim()
    return Filled(filled, filling.own(filled), surplus)


def gaps(result: QueryResult, mappings: Sequence[FillMapping]) -> int:
    """How many of the values that `mappings` take are NaN or infinite, which `fill` makes null."""
    fillers = [_filler(mapping.column, mapping.path, result) for mapping in mappings]
    return sum(filler.value(row) is None is not row[filler.source] for row in result.rows for filler in fillers)


def _filler(column: str, path: str, result: QueryResult) -> _Filler:
    columns = result.columns
    steps = parse_path(path)
    numbers = []
    for step in steps:
        if step.column is None:
            numbers.append(-1)
        elif step.column.lower() == ROW_NUMBER and ROW_NUMBER not in (name.lower() for name in columns):
            numbers.append(-2)
        else:
            numbers.append(_column(step.column, path, columns))
    source = _column(column, path, columns)
    return _Filler(path, column, steps, source, tuple(numbers), result.types[source] in ("DOUBLE", "FLOAT"))


def _column(name: str, path: str, columns: tuple[str, ...]) -> int:
    found = [i for i, given in enumerate(columns) if given == name]
    found = found or [i for i, given in enumerate(columns) if given.lower() == name.lower()]
    if not found:
        hint = _close(name, columns)
        raise BackfillError(
            f"path {path!r}: the rows have no column {name!r}{hint}; they have: {', '.join(columns[:30])}"
        )
    if len(found) > 1:
        raise BackfillError(f"path {path!r}: {len(found)} columns are called {name!r}; rename them with AS")
    return found[0]


def _value(filler: _Filler, i: int, number: int, row: tuple[Any, ...]) -> int | str:
    """Step `i` of this row's path: an index or a key."""
    column = filler.columns[i]
    if column == -1:
        return filler.steps[i].key
    value = number if column == -2 else row[column]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        given = "NULL" if value is None else repr(value)
        why = f"({filler.steps[i].column}) is {given}; an index must be an integer, a key a text"
        raise filler.fail(number, why)
    return value


def _is_index(value: int | str, step: Step) -> bool:
    return isinstance(value, int) or step.index


def _close(name: str, names: Iterable[str]) -> str:
    """ ": did you mean ...?" where one of `names` is near."""
    near = difflib.get_close_matches(name[:100], [known[:100] for known in islice(names, 300)], 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _may_add(filler: _Filler, i: int, container: dict[str, Any]) -> bool:
    """Whether a path may end in a key that is missing: beside one that is there and filled, and unlike all others."""
    if i + 1 < len(filler.steps) or len(container) > 300:
        return False
    before, key = filler.steps[:i], filler.steps[i].key
    filled = any((before, known) in filler.beside for known in container)
    return filled and all(_distance(key[:100], str(known)[:100]) > 2 for known in container)


def _distance(one: str, other: str) -> int:
    """Levenshtein's distance of two short texts, without regard to case."""
    one, other = one.lower(), other.lower()
    above = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        line = [i]
        for j, its in enumerate(other, 1):
            line.append(min(above[j] + 1, line[-1] + 1, above[j - 1] + (letter != its)))
        above = line
    return above[-1]


def _objects(root: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a template that have keys, each with its path, the outer ones first."""
    waiting: deque[tuple[str, Any]] = deque([("", root)])
    while waiting:
        path, value = waiting.popleft()
        if isinstance(value, dict):
            if value:
                yield path, value
            items: Iterable[tuple[Any, Any]] = ((re.sub(r"[.()\[\]\\]", r"\\\g<0>", key), value[key]) for key in value)
        else:
            items = enumerate(value)
        waiting.extend((f"{path}.{key}".lstrip("."), inner) for key, inner in items if isinstance(inner, (dict, list)))


class _Filling:
    """The state of one `fill`: what was written where, which lists grew, and which objects the template itself had.

    Without gaps no list can be longer than what it held plus one slot for each value written, and no more
    slots can be made in all than steps are taken: indexes far beyond that are refused at once instead of
    being allocated.
    """

    def __init__(self, root: Any, work: Sequence[tuple[QueryResult, Sequence[_Filler]]]) -> None:
        self.root = root
        self.given = {id(value) for _, value in _objects(root)}
        self.bytes = 0
        self.rows = sum(len(result.rows) for result, _ in work)
        self.longest = sum(len(result.rows) * len(fillers) for result, fillers in work) + _SLACK
        self.slots = _SLACK + sum(
            len(result.rows) * len(filler.steps) for result, fillers in work for filler in fillers
        )
        self.written: dict[tuple[int, int | str], Any] = {}
        self.reached: dict[int, tuple[list[Any], int, bool]] = {}
        """Lists with their last index that a path leads to, and whether only (columns) were indexes of it."""
        self.grown: dict[int, tuple[list[Any], int, _Filler]] = {}

    def put(self, root: Any, filler: _Filler, number: int, row: tuple[Any, ...]) -> None:
        """Write this row's value to its place below `root`."""
        values = [_value(filler, i, number, row) for i in range(len(filler.steps))]
        container = root
        for i, value in enumerate(values[:-1]):
            place = self.place(container, value, filler, i, number)
            current = _current(container, place)
            if current is _MISSING or current is _GAP or current is None:
                current = [] if _is_index(values[i + 1], filler.steps[i + 1]) else {}
                container[place] = current
            elif not isinstance(current, (dict, list)):
                raise filler.fail(number, f"step {i + 1} ({place}) is {current!r}, which has no place inside")
            container = current
        place = self.place(container, values[-1], filler, len(values) - 1, number)
        current, new = _current(container, place), filler.value(row)
        spot = (id(container), place)
        if spot in self.written:
            old = self.written[spot]
            if old != new or type(old) is not type(new):
                why = f"another row put {old!r} where this one puts {new!r}; add a (column) to the path"
                raise filler.fail(number, why)
            return
        if isinstance(current, (dict, list)) and current:
            raise filler.fail(number, f"the place holds a {type(current).__name__} with content already")
        self.written[spot] = new
        self.bytes += cells.size(new)
        if self.bytes > MAX_BYTES:
            raise filler.fail(number, f"over {MAX_BYTES >> 20} MB would be filled in; select less")
        container[place] = copy.deepcopy(new) if isinstance(new, (dict, list)) else new

    def place(self, container: Any, value: int | str, filler: _Filler, i: int, number: int) -> int | str:
        """The key or index of `value` in `container`; a list grows to it, with gaps on the way."""
        if isinstance(container, dict):
            written_out = filler.columns[i] == -1 and id(container) in self.given
            if written_out and value not in container and not _may_add(filler, i, container):
                raise self.missing(filler, i, container)
            return str(value)
        if not _is_index(value, filler.steps[i]):
            why = f"step {i + 1} is {value!r}, but a list stands there, which needs an integer index"
            raise filler.fail(number, why)
        index = int(value)
        if index < 0:
            raise filler.fail(number, f"the index {index} is below 0; count from 0")
        _, reached, by_rows = self.reached.get(id(container), (container, -1, True))
        self.reached[id(container)] = (container, max(reached, index), by_rows and filler.columns[i] != -1)
        more = index + 1 - len(container)
        if more > 0:
            _, held, _ = self.grown.setdefault(id(container), (container, len(container), filler))
            if index >= held + self.longest or more > self.slots:
                why = f"the index {index} lies beyond the {self.rows} rows; number them from 0 without gaps"
                raise filler.fail(number, why)
            self.slots -= more
            container.extend([_GAP] * more)
        return index

    def missing(self, filler: _Filler, i: int, container: dict[str, Any]) -> BackfillError:
        """The error for a key that the template lacks, with the nearest that it has."""
        key = filler.steps[i].key
        hint = _close(key, container)
        if not hint:
            places = (path for path, value in _objects(self.root) if key in value and value is not container)
            place = next(places, None)
            hint = "" if place is None else f" ({key!r} stands at {f'{place}.{key}'.lstrip('.')[:200]!r})"
        where = f"step {i + 1}" if i else "the top"
        return BackfillError(
            f"path {filler.path!r}, column {filler.column!r}: the template has no key {key!r} at {where}{hint}; "
            f"it has: {', '.join(list(map(str, container))[:30])[:500]}. Put an empty slot there, or mend the path"
        )

    def trim(self) -> int:
        """Remove the items behind those that rows filled, and say how many."""
        removed = 0
        for items, last, by_rows in self.reached.values():
            if by_rows and last + 1 < len(items):
                removed += len(items) - last - 1
                del items[last + 1 :]
        return removed

    def own(self, root: Any) -> int:
        """How many numbers stand in the data of the template that no row wrote."""
        count = 0
        waiting: list[tuple[Any, bool]] = [(root, isinstance(root, list))]
        while waiting:
            container, data = waiting.pop()
            items = container.items() if isinstance(container, dict) else enumerate(container)
            for place, value in items:
                if (id(container), place) in self.written:
                    continue
                if isinstance(value, list):
                    inside = data and isinstance(container, list)
                    waiting.append((value, inside or str(place).lower() in _DATA))
                elif isinstance(value, dict):
                    waiting.append((value, data and isinstance(container, list)))
                elif data and isinstance(value, (int, float)) and not isinstance(value, bool):
                    count += isinstance(container, list) or str(place).lower() in _DATA
        return count

    def check(self) -> None:
        """Refuse lists that came out with gaps."""
        for items, _, filler in self.grown.values():
            for index, item in enumerate(items):
                if item is _GAP:
                    raise BackfillError(
                        f"path {filler.path!r}, column {filler.column!r}: no row fills index {index} of a "
                        f"list of {len(items)}; number the rows from 0 without gaps, for example "
                        "row_number() OVER (PARTITION BY series ORDER BY time) - 1"
                    )


def _current(container: Any, place: int | str) -> Any:
    return container.get(place, _MISSING) if isinstance(container, dict) else container[int(place)]
