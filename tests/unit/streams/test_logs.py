"""What libraries say again and again is told seldom."""

from __future__ import annotations

import logging
import logging.config
import re

import pytest

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
