"""Tables that tools of a console print: each cell is read as it was printed, or the row says that it can't be told."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from hyve.tables import find
from tests.unit.console_tables import PRINTERS, Printed

TABLES = 150
LEAST = 0.85
"""Tables of one tool that are printed, and the part of their rows that must be read."""


@pytest.mark.parametrize("printer", PRINTERS, ids=[printer.__name__ for printer in PRINTERS])
def test_no_cell_gets_the_value_of_another_one(printer: Callable[[random.Random], Printed]) -> None:
    """Cells of a row that can't be told are absent, and its table says so; nearly all can be told (H5-H8)."""
    told = wanted = 0
    for seed in range(TABLES):
        printed = printer(random.Random(seed))
        around = random.Random(seed).choice([("", ""), ("$ run\n", "$ \n"), ("text, before\n\n", "\nand behind\n")])
        tables = find(printed.text.join(around))
        at = 0
        for row in (row for table in tables for row in table.rows):
            if "extra_cells" in row:
                assert any("ragged_rows" in table.flags for table in tables), printed.text
            else:
                told += 1
                assert list(row) == printed.names, printed.text
            given = {key: value for key, value in row.items() if key != "extra_cells"}
            while at < len(printed.rows) and given.items() - _row(printed, at).items():
                at += 1  # which is left as a line
            assert at < len(printed.rows), (printed.text, row)
            at += 1
        wanted += len(printed.rows)
    assert told >= LEAST * wanted, (told, wanted)


def _row(printed: Printed, number: int) -> dict[str, str]:
    return {name: cell.strip() for name, cell in zip(printed.names, printed.rows[number], strict=True)}
