"""What libraries say again and again is told seldom."""

from __future__ import annotations

import io
import logging
import logging.config
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streams import logs
from streams.logs import Seldom


def test_a_logger_says_the_same_seldom() -> None:
    now = 0.0
    logger = logging.Logger("aiokafka.test")
    said: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger.addHandler(Kept())
    logger.addFilter(Seldom(10.0, lambda: now))
    for node in range(1000):
        logger.error("Unable to connect to node %s", node)
    logger.error("something else")
    now = 11.0
    logger.error("Unable to connect to node %s", 7)
    logger.error("Unable to connect to node %s", 8)
    first, other, again = said
    assert [first, other] == ["Unable to connect to node 0", "something else"]
    assert again == "Unable to connect to node 7 (999 more such lines before)"


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("Heartbeat failed for group %s because it is rebalancing", "hyve-llm", False),
        ("Group Coordinator Request failed: %s", "[Error 15] GroupCoordinatorNotAvailableError", False),
        ("Group Coordinator Request failed: %s", "[Error 29] TopicAuthorizationFailedError", True),
        ("Heartbeat failed for group %s because it is dead", "hyve-llm", True),
        ("Warning: Task timed out!", "", False),
    ],
)
def test_what_is_usual_when_workers_come_and_go_is_no_warning(text: str, given: str, said: bool) -> None:
    record = logging.LogRecord("aiokafka.consumer", logging.ERROR, "", 1, text, (given,) if given else (), None)
    assert logs.unusual(record) is said


def test_a_line_says_when_who_how_grave_and_what(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        logging.config.dictConfig(logs.config("INFO"))
        logging.getLogger("hyve").info("store: %s: done", "r1")
        logging.getLogger("hyve").debug("not said")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    assert re.fullmatch(r"\[2\d{3}-\d\d-\d\d [\d:,]{12}\] \[\d+\] \[INFO\] store: r1: done\n", capsys.readouterr().err)


@pytest.fixture
def log() -> Iterator[Callable[[], list[str]]]:
    """What a worker's log was written since it was last asked: its lines."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    logging.config.dictConfig(logs.config("INFO"))
    handler = root.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(written := io.StringIO())

    def lines() -> list[str]:
        text = written.getvalue()
        written.seek(0)
        written.truncate()
        return text.split("\n")[:-1]

    yield lines
    root.handlers[:] = before
    root.setLevel(level)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
@example("evil\n[2026-11-30 17:00:00,000] [1] [ERROR] forged\x1b[31m")
@example("a\u2028b\x85c\u202ed\r\x00\x7f")
def test_what_is_quoted_writes_no_line_of_its_own(log: Callable[[], list[str]], text: str) -> None:
    """Invariant 8: labels, ids and names come from outside."""
    logging.getLogger("hyve").warning("store: %s: failed", text)
    (line,) = log()
    assert line.isprintable()
    assert "store: " in line
    if text.isprintable():
        assert line.endswith(f"store: {text}: failed")


def test_a_long_line_is_cut_and_says_so(log: Callable[[], list[str]]) -> None:
    logging.getLogger("hyve").warning("collect: %s", "x" * 100_000)
    logging.getLogger("hyve").warning("%s", "\x1b" * 100_000)
    first, second = log()
    assert first.endswith("xxx ... (98,009 more characters)")
    assert len(second) < 4 * logs.LONGEST + 100


def test_a_traceback_holds_no_line_that_looks_like_one_of_the_log(log: Callable[[], list[str]]) -> None:
    try:
        raise ValueError("bad\n[2026-11-30 17:00:00,000] [1] [ERROR] forged\x1b" + "y" * 9_999)
    except ValueError:
        logging.getLogger("hyve").exception("store: it failed", stack_info=True)
    head, *rest = log()
    assert head.endswith("[ERROR] store: it failed")
    assert any("[ERROR] forged\\x1b" in line for line in rest)
    assert all(line.startswith("    ") and line.isprintable() and len(line) < 2_100 for line in rest)
