"""`hyve deadletters`: letters on a broker are listed, shown and sent again."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from hyve.errors import HyveError, InputError
from schemas import DeadLetter, Position
from streams import deadletters
from tests.command import HYVE, environment
from tests.integration.pipeline import Pipeline, until
from workers import kafka
from workers.settings import Settings, load

REQUEST = b'{"deadline": 5, "question": "caf\xc3\xa9"}'
WRITTEN = int(time.time() * 1000) - 3_600_000
EVIL = b"\xff\x00 no text \x1b[31mred"


def letter(value: bytes, topic: str, **rest: Any) -> DeadLetter:
    given: dict[str, Any] = {
        "partition": 2,
        "offset": 7,
        "stage": "prepare",
        "error": "boom",
        "failed": 1_760_000_000_000,
    }
    return DeadLetter(value=base64.b64encode(value).decode(), topic=topic, **{**given, **rest})


@pytest.fixture(scope="module")
def settings(broker: str, run_id: str) -> Settings:
    """A prefix of its own with three letters and one record that is none."""
    made = load(bootstrap_servers=broker, topic_prefix=f"letters-{run_id}")
    kafka.create_topics(made)
    key = base64.b64encode(b"r-1").decode()
    with kafka.producing(made) as producer:
        topic = made.topic("deadletters")
        for record in (
            letter(REQUEST, made.topic("requests"), key=key),
            letter(EVIL, made.topic("raw"), stage="intake", error="not UTF-8 text: \x1b[2J", timestamp=WRITTEN),
            letter(b"late", made.topic("raw"), stage="intake", offset=8, failed=1_760_000_001_000),
        ):
            producer.send(topic, value=record.to_bytes(), partition=0)
        producer.send(topic, value=b"no letter", partition=1)
    return made


@pytest.fixture
def made(broker: str, run_id: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A prefix of its own, named by the test's parameter, without letters; readers wait for a second at most."""
    monkeypatch.setattr(deadletters, "_IDLE_SECONDS", 1.0)
    made = load(bootstrap_servers=broker, topic_prefix=f"{request.param}-{run_id}")
    kafka.create_topics(made)
    return made


def raw_records(settings: Settings) -> list[kafka.Stored]:
    """What stands on the raw topic now."""
    until_ms = int(time.time() * 1000) + 600_000
    with kafka.RangeReader(settings, settings.topic("raw"), 0, until_ms, time.monotonic() + 30) as reader:
        return list(reader.read(range(reader.partitions)))


def hyve(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    env = {"HYVE_BOOTSTRAP_SERVERS": settings.bootstrap_servers, "HYVE_TOPIC_PREFIX": settings.topic_prefix}
    return subprocess.run(
        [*HYVE, "deadletters", *arguments],
        capture_output=True,
        timeout=120,
        env=environment(COLUMNS="160", **env),
        check=False,
    )


def test_letters_are_listed_by_time_stage_and_topic(settings: Settings) -> None:
    found = list(deadletters.find(settings, 1.0))
    assert [(it.id, it.record.stage) for it in found] == [("0:0", "prepare"), ("0:1", "intake"), ("0:2", "intake")]
    assert [it.id for it in deadletters.find(settings, 1.0, stage="prepare")] == ["0:0"]
    assert [it.id for it in deadletters.find(settings, 1.0, topic="raw")] == ["0:1", "0:2"]
    assert [it.id for it in deadletters.find(settings, 1.0, topic=settings.topic("raw"), stage="prepare")] == []
    assert list(deadletters.find(settings, 1.0, now=time.time() - 7200)) == []


def test_the_list_on_a_terminal_shows_no_control_characters(settings: Settings) -> None:
    done = hyve(settings, "list")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["letter", "0:0", "0:1", "0:2"]
    assert "2025-10-09 08:53:20" in lines[1]
    assert f"{settings.topic('requests')}[2]@7" in lines[1]
    assert "not UTF-8 text: \\x1b[2J" in lines[2]
    assert b"\x1b" not in done.stdout
    (first, *_) = json.loads(hyve(settings, "list", "--json", "--stage", "prepare").stdout)
    assert (first["id"], first["key"], first["error"], first["value"]) == ("0:0", "r-1", "boom", REQUEST.decode())


def test_one_letter_is_shown_with_its_record(settings: Settings) -> None:
    shown = hyve(settings, "show", "0:0").stdout.decode()
    assert "stage    prepare" in shown
    assert '"question": "café"' in shown
    assert "\\xff\\x00 no text \\x1b[31mred" in hyve(settings, "show", "0:1").stdout.decode()
    assert hyve(settings, "show", "0:1", "--raw").stdout == EVIL


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("0:99", "there is no dead letter 0:99"),
        ("9:0", "no partition 9"),
        ("zero", "PARTITION:OFFSET"),
        ("1:9223372036854775808", "PARTITION:OFFSET"),
        ("2147483648:1", "PARTITION:OFFSET"),
        ("1:0", "is no dead letter"),
    ],
)
def test_a_letter_that_is_not_there_is_one_line(settings: Settings, name: str, said: str) -> None:
    with pytest.raises(HyveError, match=said):
        deadletters.get(settings, name)
    if name == "zero":
        done = hyve(settings, "show", name)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


def test_records_go_back_where_they_came_from(settings: Settings) -> None:
    """The request to its partition and with a new deadline, the raw record as it was, at the time that it had."""
    began = time.time() * 1000
    assert hyve(settings, "replay", "0:0", "0:1").stdout == b"2 records sent again\n"
    request = json.loads(kafka.read_one(settings, Position(topic=settings.topic("requests"), partition=2, offset=0)))
    assert request["question"] == "café"
    assert request["deadline"] >= began
    (raw,) = raw_records(settings)
    assert (raw.value, raw.timestamp) == (EVIL, WRITTEN)
    assert dict(raw.headers) == {
        "hyve-replayed": b"0:1",
        "hyve-attempts": b"1",
        "hyve-origin": settings.topic("raw").encode() + b"/2/7",
    }


def test_all_that_stands_on_the_topic_is_of_its_contract(settings: Settings) -> None:
    """Whoever reads it by the published schema meets notes of what was replayed, too, and can tell them."""
    until_ms = int(time.time() * 1000) + 600_000
    with kafka.RangeReader(settings, settings.topic("deadletters"), 0, until_ms, time.monotonic() + 30) as reader:
        found = [DeadLetter.from_bytes(it.value) for it in reader.read([0])]
    assert sorted((it.replayed, it.topic) for it in found[3:]) == [("0:0", ""), ("0:1", "")]
    with pytest.raises(HyveError, match=r"it notes that 0:[01] was replayed"):
        deadletters.get(settings, "0:3")


def test_all_means_those_that_were_not_sent_before(settings: Settings) -> None:
    """A second replay of all must not double what the first one sent; names and --again still send it."""
    left = (
        b" left: replayed before (--again sends those too), of a record with a newer letter, or posted to the webhook\n"
    )
    of = ("replay", "--all", "--stage", "intake")
    assert hyve(settings, *of).stdout == b"1 record sent again\n1" + left
    assert hyve(settings, *of).stdout == b"0 records sent again\n2" + left
    assert [it.replayed for it in deadletters.find(settings, 1.0)] == [True, True, True]
    assert b"(replayed) boom" in hyve(settings, "list").stdout
    assert hyve(settings, *of, "--again").stdout == b"2 records sent again\n"
    assert hyve(settings, "replay", "0:1").stdout == b"1 record sent again\n"


def test_a_record_that_fails_again_counts_its_attempts(
    make_pipeline: Callable[..., Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its telemetry, once it is mended, is told by where it first stood, however often it is sent."""
    monkeypatch.setattr(deadletters, "_IDLE_SECONDS", 1.0)
    pipeline = make_pipeline("again").start("intake")
    pipeline.send("raw", None, EVIL)
    first = until(lambda: deadletters.find(pipeline.settings, 1.0))
    assert [it.record.attempts for it in first] == [1]
    for count in (2, 3):
        assert deadletters.replay_all(pipeline.settings, 1.0) == (1, count - 2)
        found = until(lambda n=count: len(it := deadletters.find(pipeline.settings, 1.0)) == n and it)
        assert sorted(it.record.attempts for it in found) == list(range(1, count + 1))
    good = letter(b'{"service": "cart", "message": "x"}', pipeline.topic("raw"), stage="intake")
    with kafka.producing(pipeline.settings) as producer:
        producer.send(pipeline.topic("deadletters"), good.to_bytes(), partition=5)
    (mended,) = until(lambda: [it for it in deadletters.find(pipeline.settings, 1.0) if it.record == good])
    for _ in range(2):
        assert deadletters.replay(pipeline.settings, [mended]) == 1
    records = until(lambda: len(it := pipeline.records("telemetry")) == 2 and it)
    assert {dict(record.headers)["hyve-source"] for record in records} == {pipeline.topic("raw").encode() + b"/2/7/0"}


@pytest.mark.parametrize("made", ["newest"], indirect=True)
def test_of_a_record_with_several_letters_the_newest_is_sent(made: Settings) -> None:
    topic = made.topic("deadletters")
    origin = {"hyve-origin": base64.b64encode(f"{made.topic('raw')}/2/7".encode()).decode()}
    first, other = letter(b"a", made.topic("raw")), letter(b"b", made.topic("raw"), offset=8)
    again = letter(b"a", made.topic("raw"), partition=1, offset=3, attempts=2, failed=first.failed + 5, headers=origin)
    with kafka.producing(made) as producer:
        for record in (first, other, again):
            producer.send(topic, record.to_bytes(), partition=0)
    assert deadletters.replay_all(made, 1.0) == (2, 1)
    assert deadletters.replay_all(made, 1.0) == (0, 3)
    assert deadletters.replay_all(made, 1.0, again=True) == (2, 1)
    sent = [dict(it.headers) for it in raw_records(made)]
    assert sorted(it["hyve-replayed"] for it in sent) == [b"0:1", b"0:1", b"0:2", b"0:2"]
    assert {it["hyve-origin"] for it in sent if it["hyve-replayed"] == b"0:2"} == {f"{made.topic('raw')}/2/7".encode()}


@pytest.mark.parametrize("made", ["stuck"], indirect=True)
def test_a_letter_that_cannot_be_sent_holds_up_no_other(made: Settings, run_id: str) -> None:
    """Its topic is gone, its partition is, it is damaged or empty: it is named, and the others are sent and noted."""
    raw, topic = made.topic("raw"), made.topic("deadletters")
    records = (
        letter(b"1", raw, offset=1),
        letter(b"2", f"gone-{run_id}", offset=2, error="topic is gone"),
        letter(b"3", made.topic("requests"), partition=99, offset=3),
        letter(b"4", raw, offset=4).model_copy(update={"value": "%% no base64", "error": "damaged"}),
        letter(b"5", "no name of a topic!", offset=5),
        letter(b"6", raw, offset=6),
    )
    with kafka.producing(made) as producer:
        for record in records:
            producer.send(topic, record.to_bytes(), partition=0)
        producer.send(topic, None, key=b"k", partition=0)
    said = (
        f"2 sent, 4 not: letter 0:1: there is no topic gone-{run_id} any more; letter 0:2: .*; "
        "letter 0:3: this dead letter is damaged: .*; letter 0:4: there is no topic no name of a topic! any more$"
    )
    with pytest.raises(HyveError, match=said):
        deadletters.replay_all(made, 1.0)
    with pytest.raises(HyveError, match=r"0 sent, 4 not: "):
        deadletters.replay_all(made, 1.0)
    assert sorted(it.value for it in raw_records(made)) == [b"1", b"6"]
    found = deadletters.find(made, 1.0)
    console = Console(file=(printed := io.StringIO()), width=160)
    console.print(deadletters.table(found))
    listed = printed.getvalue().splitlines()
    assert [line.split()[0] for line in listed] == ["letter", *(f"0:{i}" for i in range(6))]
    assert "damaged" in listed[4]
    told = {it.id: deadletters.described(it) for it in found}
    assert (told["0:3"]["damaged"], told["0:3"]["value"], told["0:3"]["error"]) == (True, None, "damaged")
    assert (told["0:0"]["value"], "damaged" in told["0:0"]) == ("1", False)
    deadletters.show(found[3], console)
    assert "is damaged" in printed.getvalue()
    for command in ("show", "replay"):
        assert hyve(made, command, "0:6").stderr == b"hyve: there is no dead letter 0:6: its record is empty\n"


def test_what_was_posted_to_the_webhook_is_shown_and_not_replayed(settings: Settings) -> None:
    posted = letter(b'{"alerts": [7]}', "", stage="webhook", partition=-1, offset=-1)
    with kafka.producing(settings) as producer:
        producer.send(settings.topic("deadletters"), posted.to_bytes(), partition=3)
    assert b"posted to the webhook" in hyve(settings, "show", "3:0").stdout
    done = hyve(settings, "replay", "3:0")
    assert done.returncode == 2
    assert b"`hyve deadletters show 3:0 --raw` prints it" in done.stderr
    assert hyve(settings, "replay", "--all", "--stage", "webhook").stdout.startswith(b"0 records sent again\n1 left")


def test_notes_of_the_release_before_are_known(settings: Settings) -> None:
    with kafka.producing(settings) as producer:
        producer.send(settings.topic("deadletters"), letter(b"old", settings.topic("raw")).to_bytes(), partition=4)
        producer.send(settings.topic("deadletters"), b'{"replayed":"4:0"}', partition=4)
    assert [(it.id, it.replayed) for it in deadletters.find(settings, 1.0) if it.partition == 4] == [("4:0", True)]


def test_a_list_that_goes_into_a_file_has_a_line_for_each_letter(settings: Settings) -> None:
    long = letter(b"x", settings.topic("raw"), stage="long", error="word " * 300 + "end")
    with kafka.producing(settings) as producer:
        producer.send(settings.topic("deadletters"), long.to_bytes(), partition=5)
    head, line = hyve(settings, "list", "--stage", "long").stdout.decode().splitlines()
    assert line.endswith(long.error)
    assert head == head.rstrip()


def test_an_empty_list_names_its_filter(settings: Settings) -> None:
    said = hyve(settings, "list", "--stage", "nope").stdout
    assert said == b"no dead letters of stage nope in the last 24 hours\n"


@pytest.mark.parametrize("arguments", [(), ("0:0", "--all")])
def test_replay_wants_either_names_or_all(settings: Settings, arguments: tuple[str, ...]) -> None:
    done = hyve(settings, "replay", *arguments)
    assert done.returncode == 2
    assert (b"not both" in done.stderr) == bool(arguments)
    assert b"--all" in done.stderr
    with pytest.raises(InputError):
        deadletters.get(settings, "0:0:0")


@pytest.mark.parametrize("value", [b"no json", b"[1]", b'{"deadline": null}', b'{"deadline": "soon"}', b"[" * 9999])
def test_what_has_no_deadline_is_sent_as_it_was(value: bytes) -> None:
    assert deadletters.renewed(value, 5) == value


def test_a_deadline_to_come_is_kept() -> None:
    value = json.dumps({"deadline": int(time.time() * 1000) + 60_000}).encode()
    assert deadletters.renewed(value, 5) == value
