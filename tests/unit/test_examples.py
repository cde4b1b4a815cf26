"""Example queries run, and mean what they say (H24)."""

from __future__ import annotations

import json
import re

import pytest

import hyve
from tests.unit.changes_inputs import at


@pytest.mark.parametrize("names", [("host", "n"), ("n", "mean"), ("N", "Mean")])
def test_no_name_in_a_query_is_that_of_a_column(names: tuple[str, str]) -> None:
    group, number = names
    rows = [{"ts": at(i), group: f"h{i % 4}", number: (i * 37 % 101) / 7} for i in range(2_000)]
    [query] = re.findall("SELECT .*", hyve.view(json.dumps(rows), "", 2_000).text)
    with hyve.Datastore.from_text(json.dumps(rows)) as store:
        result = store.query(query)
    assert len({name.lower() for name in result.columns}) == len(result.columns) == 3
    assert [row[1] for row in result.rows] == [500] * 4
