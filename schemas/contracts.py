"""How the contract of a record changes: versions, upgrade steps, and what a change may not break.

Workers are replaced one by one, so for a while the old and the new version write to the same topics and read from them.

Rules for a reader of version N:
- It reads N. A record without a version has version 1.
- It reads what is older by the upgrade steps that are registered from there on. The step from N-1 must be, and steps
  stay as long as a topic or a dead letter may hold such records. Where one is missing, the record is refused.
- It reads N+1 as if it were N: a writer of N+1 still writes all that N reads (`unreadable_before` holds it to that).
  Fields that N doesn't know survive, and the record keeps its version, so passing it on loses nothing.
- It refuses what is newer still: nobody has promised that N can make sense of it. The bytes go to the dead letters,
  from where they are replayed when the workers are new enough.

Within a version only optional fields may come (`incompatible`). All else is a new version, whose steps are:
1. In the record's class: `version: int = at_version(N+1)`, the new fields, and beside them the old ones, optional now.
2. `@upgrade("ClassName", N)`: a function from the fields of version N to those of N+1.
3. `python -m schemas` writes the new file and checks it against the last one; its copy goes to the tests'
   `published` folder, a record of it (bytes) to `golden`.
4. The old fields go with version N+2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import Field
from pydantic_core import from_json

Fields = dict[str, Any]
Step = Callable[[Fields], Fields]

_STEPS: Final[dict[tuple[str, int], Step]] = {}
_WORDS: Final = ("title", "description", "examples")
"""What a schema says to people only."""


def at_version(number: int) -> Any:
    """The field `version` of a record whose contract is at `number`."""
    return Field(default=number, ge=1, description="Version of this record's contract.")


def upgrade(record: str, version: int) -> Callable[[Step], Step]:
    """Registers the function that makes fields of `version` of the class `record` those of the next one.

    It gets the fields as JSON had them, of any type and size, those it doesn't know too, and returns all of them. What
    it raises refuses the record.
    """

    def register(step: Step) -> Step:
        if (record, version) in _STEPS:
            raise ValueError(f"the step of {record} from version {version} on is registered already")
        _STEPS[record, version] = step
        return step

    return register


def has_step(record: str, version: int) -> bool:
    """Whether records of `version` can be made ones of the next."""
    return (record, version) in _STEPS


def parsed(data: bytes) -> Any:
    """The JSON value of `data`; None where it holds none."""
    try:
        return from_json(data)
    except ValueError:
        return None


def version_of(fields: Any, current: int) -> int:
    """The version that the JSON value of an unusable record names; `current` where it names none that could be."""
    found = fields.get("version", 1) if isinstance(fields, dict) else None
    return found if type(found) is int and found > 0 else current


def upgraded(record: str, fields: Fields, version: int, current: int) -> Fields:
    """The fields of `version` as those of `current`. Raises `ValueError` where a step is missing or fails."""
    for number in range(version, current):
        step = _STEPS.get((record, number))
        if step is None:
            raise ValueError(
                f"not {named(record)} that can be read: it has version {version}, and this reader knows version "
                f"{current} and has no step up from version {number}; a worker of an older release reads it"
            )
        try:
            fields = step(fields)
        except Exception as error:  # whatever hostile fields do to it
            raise ValueError(
                f"not {named(record)}: version {number} can't be made version {number + 1}: "
                f"{type(error).__name__}: {error}"
            ) from None
    return {**fields, "version": current}


def named(record: str) -> str:
    """A record's name with its article."""
    return f"{'an' if record.startswith('A') else 'a'} {record}"


def too_new(record: str, version: int, current: int) -> str:
    """What is said of a record that is newer than the version after `current`."""
    return (
        f"not {named(record)} that can be read: it has version {version}, and this reader knows up to {current + 1}; "
        "bring this worker up to date, then replay the record"
    )


def incompatible(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What of the JSON Schema `new` breaks readers or writers of `old`, both of one version; empty: nothing.

    Optional fields with a default may come; texts for people may change; all else is another version.
    """
    return _objects(old, new, _same_version)


def unreadable_before(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What of `new` a reader of `old`, the version before, couldn't read; empty: nothing.

    Optional fields may go, fields may come. A field that was required must stay (it may become optional: whoever
    writes `new` writes it), and what stays must allow the same values.
    """
    return _objects(old, new, _next_version)


Compare = Callable[[str, Mapping[str, Any], Mapping[str, Any]], Iterator[str]]


def _objects(old: Mapping[str, Any], new: Mapping[str, Any], compare: Compare) -> list[str]:
    """The faults of the record and of each of its parts (`$defs`). A field names its part, so none can go unnoticed."""
    parts = new.get("$defs", {})
    faults = list(compare("", old, new))
    for name, part in old.get("$defs", {}).items():
        if name in parts:
            faults += compare(f"{name}.", part, parts[name])
    return faults


def _same_version(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = old.get("properties", {}), new.get("properties", {})
    for name, schema in before.items():
        if name not in after:
            yield f"{where}{name}: is gone"
        elif _bare(schema) != _bare(after[name]):
            yield f"{where}{name}: allows other values or has another default"
    for name in sorted(set(new.get("required", ())) ^ set(old.get("required", ()))):
        yield f"{where}{name}: is {'required now' if name in new.get('required', ()) else 'no longer required'}"
    if _others(old) != _others(new):
        yield f"{where or 'the record'}: allows other values"


def _next_version(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = old.get("properties", {}), new.get("properties", {})
    for name, schema in before.items():
        if name not in after:
            if name in old.get("required", ()):
                yield f"{where}{name}: is gone, and the version before requires it"
        elif name != "version" and _bare(schema, "default") != _bare(after[name], "default"):
            yield f"{where}{name}: allows other values"
    if _others(old) != _others(new):
        yield f"{where or 'the record'}: allows other values"


def _bare(schema: Any, *more: str) -> Any:
    """A schema without what it says to people only, and without `more`; fields of these names stay."""
    if isinstance(schema, list):
        return [_bare(value, *more) for value in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: {field: _bare(it, *more) for field, it in value.items()} if name == "properties" else _bare(value, *more)
        for name, value in schema.items()
        if name not in (*_WORDS, *more)
    }


def _others(schema: Mapping[str, Any]) -> Any:
    """All that a schema says beside its fields, its parts and its name."""
    return {
        name: value
        for name, value in schema.items()
        if name not in (*_WORDS, "properties", "required", "$defs", "$id", "$schema")
    }
