"""Contracts of records: versions meet during a rolling upgrade, and what is published stays readable.

`golden/` has one record of each topic and version as bytes, written when the version was new; `published/` has the
JSON Schema files as they were then. Neither is ever changed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hyve.formats import Record as Telemetry
from schemas import Alert, DiagnosisRequest, TelemetryRecord, contracts
from schemas.__main__ import FOLDER, document, file_name, main, records
from schemas.contracts import at_version, incompatible, unreadable_before
from schemas.records import Payload, Record
from streams.intake import wire

HERE = Path(__file__).parent
GOLDEN, PUBLISHED = HERE / "golden", HERE / "published"
RECORDS = records()


def named(path: Path) -> tuple[str, int]:
    """Topic and version of a file's name."""
    topic, version, _ = path.name.split(".")
    return topic, int(version[1:])


# One record at three versions: `seconds` became `ms` in 2, and went with 3, which needs `host`, too.


class Sample1(Record):
    name: str
    seconds: float
    part: Payload | None = None


class Sample2(Record):
    version: int = at_version(2)
    name: str
    ms: float
    seconds: float = 0.0  # what readers of version 1 need; goes with version 3
    part: Payload | None = None


class Sample3(Record):
    version: int = at_version(3)
    name: str
    ms: float
    host: str


class Sample4(Record):
    version: int = at_version(4)
    name: str


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps between them. A record's name is its class's: these stand for three releases of one class."""
    monkeypatch.setattr(contracts, "_STEPS", {})

    def milliseconds(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "ms": float(fields["seconds"]) * 1000}

    def host(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "host": fields["name"].partition("/")[0]}

    for name in ("Sample2", "Sample3"):
        contracts.upgrade(name, 1)(milliseconds)
    contracts.upgrade("Sample3", 2)(host)


V1 = {"name": "a/b", "seconds": 1.5, "part": {"name": "p", "text": "t", "colour": "red"}, "tenant": {"id": 7}}


def written(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("said", [{}, {"version": 1}])
def test_a_record_of_the_version_before_is_upgraded_and_what_it_does_not_know_survives(said: dict[str, int]) -> None:
    record = Sample2.from_bytes(written({**V1, **said}))
    assert (record.version, record.name, record.ms, record.seconds) == (2, "a/b", 1500.0, 1.5)
    assert json.loads(record.to_bytes()) == {
        "version": 2,
        "name": "a/b",
        "ms": 1500.0,
        "seconds": 1.5,
        "part": {"name": "p", "text": "t", "url": "", "size": 0, "digest": "", "colour": "red"},
        "tenant": {"id": 7},
    }


@pytest.mark.usefixtures("steps")
def test_during_a_rolling_upgrade_each_version_reads_the_other() -> None:
    new = Sample2(name="a", ms=2500.0, seconds=2.5)
    read = Sample1.from_bytes(new.to_bytes())
    assert (read.version, read.name, read.seconds) == (2, "a", 2.5)
    # The older worker passes it on, and the newer one has it back as it was.
    assert Sample2.from_bytes(read.to_bytes()) == new
    assert Sample2.from_bytes(Sample1(name="a", seconds=2.5).to_bytes()) == new


@pytest.mark.usefixtures("steps")
def test_steps_are_taken_one_after_the_other() -> None:
    record = Sample3.from_bytes(written(V1))
    assert (record.version, record.ms, record.host) == (3, 1500.0, "a")


@pytest.mark.usefixtures("steps")
def test_what_is_newer_than_the_next_version_is_refused_with_what_to_do() -> None:
    """Dead letters keep its bytes, and a newer worker replays them."""
    data = Sample3(name="a", ms=1.0, host="h").to_bytes()
    assert Sample2.from_bytes(data).version == 3
    says = "Sample1 that can be read: it has version 3, and this reader knows up to 2; bring this worker up to date"
    with pytest.raises(ValueError, match=says):
        Sample1.from_bytes(data)
    with pytest.raises(ValueError, match="version 9, and this reader knows up to 2"):
        Sample1.from_bytes(b'{"version": 9, "name": "a", "seconds": 1}')


@pytest.mark.usefixtures("steps")
def test_what_is_older_than_the_steps_reach_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        ValueError, match="it has version 1, and this reader knows version 4 and has no step up from version 1"
    ):
        Sample4.from_bytes(written(V1))


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"name": "a"}', "not a Sample2: version 1 can't be made version 2: KeyError: 'seconds'"),
        (b'{"name": "a", "seconds": "x"}', "not a Sample2: version 1 can't be made version 2: ValueError"),
        (b'{"name": 7, "seconds": 1}', r"not a Sample2: name: .*\(it is of version 1\)"),
        (b'{"name": 7, "ms": 1, "version": 2}', "not a Sample2: name: Input should be a valid string$"),
        (b'{"name": 7, "ms": 1, "version": 3}', r"not a Sample2: name: .*\(it is of version 3\)"),
        (b'{"name": "a", "ms": 1, "version": 0}', "not a Sample2: version: "),
        (b'{"name": "a", "ms": 1, "version": -1}', "not a Sample2: version: "),
        (b'{"name": "a", "ms": 1, "version": null}', "not a Sample2: version: "),
        (b'{"name": "a", "ms": 1, "version": {}}', "not a Sample2: version: "),
        *((blank, "not a Sample2: the record is empty") for blank in (b"", b" \n" * 50)),
        (b"[1]", "not a Sample2: the record: Input should be an object"),
        (b"\xff", "not a Sample2: the record: Invalid JSON"),
        (b"[" * 100_000, "not a Sample2: the record: Invalid JSON"),
        (b'{"a":' * 100_000, "not a Sample2: the record: Invalid JSON"),
    ],
)
def test_a_bad_record_of_any_version_is_a_value_error(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Sample2.from_bytes(data)


def test_a_record_has_the_right_article() -> None:
    for data in (b"{}", b'{"version": 9}'):
        with pytest.raises(ValueError, match=r"^not an Alert"):
            Alert.from_bytes(data)


def test_a_step_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contracts, "_STEPS", {})
    contracts.upgrade("Sample2", 1)(dict)
    with pytest.raises(ValueError, match="Sample2 from version 1 on is registered already"):
        contracts.upgrade("Sample2", 1)(dict)


def test_every_topic_and_version_has_a_golden_record_and_a_published_file() -> None:
    wanted = sorted(file_name(topic, n + 1) for topic, record in RECORDS.items() for n in range(record.contract()))
    assert sorted(path.name for path in GOLDEN.iterdir()) == wanted
    assert sorted(path.name for path in PUBLISHED.iterdir()) == wanted
    assert sorted(path.name for path in FOLDER.glob("*.json")) == wanted


@pytest.mark.parametrize("path", sorted(GOLDEN.iterdir()), ids=lambda path: path.name)
def test_golden_records_are_read_for_ever(path: Path) -> None:
    topic, version = named(path)
    record = RECORDS[topic].from_bytes(path.read_bytes())
    assert record.version == RECORDS[topic].contract()
    if version == record.version:
        again = json.loads(record.to_bytes())
        assert {name: again[name] for name in json.loads(path.read_bytes())} == json.loads(path.read_bytes())


@pytest.mark.parametrize("path", sorted(PUBLISHED.iterdir()), ids=lambda path: path.name)
def test_a_published_contract_only_changes_compatibly(path: Path) -> None:
    topic, version = named(path)
    first, now = path.read_text("utf-8"), (FOLDER / path.name).read_text("utf-8")
    if version < RECORDS[topic].contract():
        assert now == first, f"{path.name} is published and has a successor: it stays as it is"
    assert incompatible(json.loads(first), json.loads(now)) == []


@pytest.mark.parametrize("topic", RECORDS)
def test_each_version_can_be_read_by_the_one_before(topic: str) -> None:
    texts = [(FOLDER / file_name(topic, n + 1)).read_text("utf-8") for n in range(RECORDS[topic].contract())]
    for old, new in pairwise(texts):
        assert unreadable_before(json.loads(old), json.loads(new)) == []
    assert all(contracts.has_step(RECORDS[topic].__name__, n + 1) for n in range(len(texts) - 1))


def test_files_are_those_of_the_records() -> None:
    for topic, record in RECORDS.items():
        name = file_name(topic, record.contract())
        assert (FOLDER / name).read_text("utf-8") == document(topic, record), f"{name} drifted: run python -m schemas"


def test_what_the_intake_writes_by_itself_has_the_present_version() -> None:
    record = json.loads(wire(Telemetry("log", "a", 1, {"body": "x"})))
    assert record.get("version", 1) == TelemetryRecord.contract()
    assert TelemetryRecord.from_bytes(json.dumps(record).encode()).row == {"body": "x"}


QUERIES = json.loads((PUBLISHED / "queries.v1.json").read_text("utf-8"))


def gone(schema: Any) -> None:
    del schema["properties"]["asked"]


def required_gone(schema: Any) -> None:
    del schema["properties"]["hop"]
    schema["required"].remove("hop")


def in_part_gone(schema: Any) -> None:
    del schema["$defs"]["Account"]["properties"]["cost"]


def other_type(schema: Any) -> None:
    schema["properties"]["sql"]["type"] = "integer"


def in_part_other_type(schema: Any) -> None:
    schema["$defs"]["FillMapping"]["properties"]["column"]["type"] = "integer"


def other_choice(schema: Any) -> None:
    schema["properties"]["kind"]["enum"].append("chart")


def other_default(schema: Any) -> None:
    schema["properties"]["cut"]["default"] = True


def new_required(schema: Any) -> None:
    schema["properties"]["tenant"] = {"type": "string"}
    schema["required"].append("tenant")


def no_longer_required(schema: Any) -> None:
    schema["required"].remove("kind")
    schema["properties"]["kind"]["default"] = "direct"


def closed(schema: Any) -> None:
    schema["additionalProperties"] = False


def new_optional(schema: Any) -> None:
    schema["properties"]["tenant"] = {"type": "string", "default": ""}
    schema["$defs"]["Tenant"] = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


def other_words(schema: Any) -> None:
    schema["description"] = schema["properties"]["sql"]["title"] = "Other words."


@pytest.mark.parametrize(
    ("change", "same", "next_"),
    [
        (gone, ["asked: is gone"], []),
        (
            required_gone,
            ["hop: is gone", "hop: is no longer required"],
            ["hop: is gone, and the version before requires it"],
        ),
        (in_part_gone, ["Account.cost: is gone"], []),
        (other_type, ["sql: allows other values or has another default"], ["sql: allows other values"]),
        (
            in_part_other_type,
            ["FillMapping.column: allows other values or has another default"],
            ["FillMapping.column: allows other values"],
        ),
        (other_choice, ["kind: allows other values or has another default"], ["kind: allows other values"]),
        (other_default, ["cut: allows other values or has another default"], []),
        (new_required, ["tenant: is required now"], []),
        (no_longer_required, ["kind: allows other values or has another default", "kind: is no longer required"], []),
        (closed, ["the record: allows other values"], ["the record: allows other values"]),
        (new_optional, [], []),
        (other_words, [], []),
    ],
)
def test_what_breaks_a_contract_is_named(change: Callable[[Any], None], same: list[str], next_: list[str]) -> None:
    changed = deepcopy(QUERIES)
    change(changed)
    assert changed != QUERIES
    assert incompatible(QUERIES, changed) == same
    assert unreadable_before(QUERIES, changed) == next_


def test_a_field_may_be_called_title_or_default() -> None:
    before = {"properties": {"title": {"type": "string"}, "default": {"type": "string"}}}
    after = {"properties": {"title": {"type": "integer"}}}
    assert incompatible(before, after) == [
        "title: allows other values or has another default",
        "default: is gone",
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "json"))


def test_a_change_within_the_rules_is_written_and_others_are_not(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contracts, "_STEPS", {})

    class Wider(Alert):
        tenant: str = ""

    class Stricter(Alert):
        tenant: str

    class Next(Alert):
        version: int = at_version(2)
        tenant: str

    before = (folder / "alerts.v1.json").read_bytes()
    assert main(folder, {"alerts": Stricter}) == 1
    assert "alerts: tenant: is required now: that needs version 2" in capsys.readouterr().err
    assert (folder / "alerts.v1.json").read_bytes() == before

    assert main(folder, {"alerts": Next}) == 1
    assert "alerts: there is no step from version 1 to 2" in capsys.readouterr().err
    contracts.upgrade("Next", 1)(lambda fields: {**fields, "tenant": ""})
    assert main(folder, {"alerts": Next}) == 0
    assert capsys.readouterr().out == "wrote alerts.v2.json\n"
    assert (folder / "alerts.v1.json").read_bytes() == before
    schema = json.loads((folder / "alerts.v2.json").read_text())
    assert schema["$id"] == "urn:hyve:alerts:v2"
    assert "version" in schema["required"], "a record without a version is of version 1"

    assert main(folder, {"alerts": Wider}) == 0
    assert "tenant" in json.loads((folder / "alerts.v1.json").read_text())["properties"]
    (folder / "alerts.v1.json").unlink()
    assert main(folder, {"alerts": Next}) == 1
    assert "alerts.v1.json is missing: published files are kept" in capsys.readouterr().err


def test_a_new_version_that_the_one_before_could_not_read_is_not_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contracts, "_STEPS", {("Next", 1): dict})

    class Next(Record):
        version: int = at_version(2)
        fingerprint: int

    assert main(folder, {"alerts": Next}) == 1
    told = capsys.readouterr().err
    assert "alerts: fingerprint: allows other values: a reader of version 1 can't read that" in told
    assert "alerts: status: is gone, and the version before requires it" in told
    assert not (folder / "alerts.v2.json").exists()


def test_half_surrogates_of_a_record_are_question_marks() -> None:
    """JSON may spell them, and many a writer does; UTF-8 has none."""
    written = (
        b'{"request_id":"r","question":"why \\ud83d?","payloads":[{"name":"a","text":"x \\uDE00 \\ud83d\\ude00"}]}'
    )
    request = DiagnosisRequest.from_bytes(written)
    assert (request.question, request.payloads[0].text) == ("why ??", "x ? \U0001f600")
    with pytest.raises(ValueError, match="not a DiagnosisRequest: question: "):
        DiagnosisRequest.from_bytes(b'{"request_id":"\\ud83d","payloads":[]}')
    with pytest.raises(ValueError, match="not a DiagnosisRequest"):
        DiagnosisRequest.from_bytes(b'{"question":"\\ud83d"' + b"[" * 100_000)
