"""Records that clients of databases print with one line a cell: mysql's `\\G` and psql's `\\x`.

Rules: all records have the names of the first one, or the table ends; a cell may go on in the lines below it.
"""

from __future__ import annotations

import re

from hyve.delimited import Table, column_names

BEGIN = re.compile(r"\*{8,} \d+\. row \*{8,}\Z|-\[ RECORD \d+ \][-+]*\Z")
"""The line above each record."""
_COUNT = re.compile(r"\d+ rows? in set|\(\d+ rows?\)")


def expanded(lines: list[str], i: int) -> Table | None:
    """The table of the records that begin at line `i`; its span counts lines."""
    read = _mysql if lines[i][0] == "*" else _psql
    rows: list[list[tuple[str, str]]] = []
    stop = i
    while stop < len(lines) and BEGIN.match(lines[stop]) and lines[stop][0] == lines[i][0]:
        fields, end = read(lines, stop + 1)
        if not fields or (rows and [name for name, _ in fields] != [name for name, _ in rows[0]]):
            break
        rows.append(fields)
        stop = end
    if not rows:
        return None
    names = column_names([name for name, _ in rows[0]])
    return Table([dict(zip(names, (text for _, text in row), strict=False)) for row in rows], i, stop, "table")


def _mysql(lines: list[str], i: int) -> tuple[list[tuple[str, str]], int]:
    """The names and texts of a record, whose colons stand below each other, and the line behind it."""
    fields: list[tuple[str, list[str]]] = []
    place = -1
    blank = 0  # lines, which belong to a cell only if more of the record is behind them
    while i < len(lines) and not BEGIN.match(line := lines[i]) and not _COUNT.match(line):
        colon = line.find(":") if not fields else place if line[place : place + 1] == ":" else -1
        name = line[:colon].strip() if colon > 0 and line[colon + 1 : colon + 2] in (" ", "") else ""
        if name and line[colon - 1] != " ":
            place = colon
            if fields:
                fields[-1][1].extend([""] * blank)
            fields.append((name, [line[colon + 2 :]]))
            blank = 0
        elif not line and fields:
            blank += 1
        elif fields and not blank:
            fields[-1][1].append(line)
        else:
            break
        i += 1
    return [(name, "\n".join(texts)) for name, texts in fields], i - blank


def _psql(lines: list[str], i: int) -> tuple[list[tuple[str, str]], int]:
    """The same, where bars stand below each other; a `+` says that a cell goes on."""
    fields: list[tuple[str, list[str]]] = []
    place = -1
    while i < len(lines) and (line := lines[i]):
        bar = line.find("|") if not fields else place if line[place : place + 1] == "|" else -1
        if bar < 1 or BEGIN.match(line):
            break
        place, name, text = bar, line[:bar].strip(), line[bar + 2 :]
        if name:
            fields.append((name, [text]))
        elif fields and fields[-1][1][-1].endswith("+"):
            texts = fields[-1][1]
            texts[-1] = texts[-1][:-1].rstrip()
            texts.append(text)
        else:
            break
        i += 1
    return [(name, "\n".join(texts).rstrip()) for name, texts in fields], i
