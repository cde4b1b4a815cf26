"""The three modes end to end with a scripted model, as Markdown: `python -m tests.bench.modes`.

The worked example (H33): a request of 3 series with 768 points each. The model sees the excerpt and writes one call
that fills a chart, once for each charting library; or it asks for rows and answers; or it answers at once. Printed:
calls, o200k tokens of the data, of the prompts, and of all that the model wrote (text, and names and arguments of
calls), and how many of the 2,304 points of the chart are equal, time and value, to those of the request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import hyve
from hyve import stages
from hyve.reply import ModelReply, ToolCall
from tests.bench import series

MOST = 400
"""Most tokens that the model may write for the chart."""

_NAMES = ("checkout_latency_p99_ms", "orders_per_minute", "db_pool_in_use")
_SQL = 'SELECT series_idx, _row_id, x, y FROM "column"'
_LONG = (
    "SELECT row_number() OVER (ORDER BY c.series_idx, c._row_id) - 1 AS n, c.x, c.y, s.name"
    ' FROM "column" c JOIN series s ON s._row_id = c.series_idx'
)
_ECHARTS = {
    "xAxis": {"type": "time"},
    "yAxis": {"type": "value"},
    "series": [{"type": "line", "name": name, "data": []} for name in _NAMES],
}
_HIGHCHARTS = {
    "xAxis": {"categories": []},
    "series": [{"type": "line", "name": name, "data": []} for name in _NAMES],
}
_CHARTJS = {"type": "line", "data": {"labels": [], "datasets": [{"label": name, "data": []} for name in _NAMES]}}
_VEGA = {
    "mark": "line",
    "data": {"values": []},
    "encoding": {
        "x": {"field": "x", "type": "temporal"},
        "y": {"field": "y", "type": "quantitative"},
        "color": {"field": "s"},
    },
}
_PAPER = {"CDSAILineChart": {"data": {"list": [{"name": name, "data": []} for name in _NAMES]}}}

Point = tuple[str, float]
CHARTS: dict[str, tuple[Any, str, dict[str, str], Callable[[Any, int, int], Any]]] = {
    "ECharts": (
        _ECHARTS,
        _SQL,
        {"x": "series.(series_idx).data.(_row_id).0", "y": "series.(series_idx).data.(_row_id).1"},
        lambda chart, s, i: chart["series"][s]["data"][i],
    ),
    "Highcharts": (
        _HIGHCHARTS,
        _SQL,
        {"x": "xAxis.categories.(_row_id)", "y": "series.(series_idx).data.(_row_id)"},
        lambda chart, s, i: [chart["xAxis"]["categories"][i], chart["series"][s]["data"][i]],
    ),
    "Chart.js": (
        _CHARTJS,
        _SQL,
        {"x": "data.labels.(_row_id)", "y": "data.datasets.(series_idx).data.(_row_id)"},
        lambda chart, s, i: [chart["data"]["labels"][i], chart["data"]["datasets"][s]["data"][i]],
    ),
    "Vega-Lite": (
        _VEGA,
        _LONG,
        {"x": "data.values.(n).x", "y": "data.values.(n).y", "name": "data.values.(n).s"},
        lambda chart, s, i: [chart["data"]["values"][768 * s + i]["x"], chart["data"]["values"][768 * s + i]["y"]],
    ),
    "the paper's": (
        _PAPER,
        _SQL,
        {
            "x": "CDSAILineChart.data.list.(series_idx).data.(_row_id).x",
            "y": "CDSAILineChart.data.list.(series_idx).data.(_row_id).y",
        },
        lambda chart, s, i: [chart["CDSAILineChart"]["data"]["list"][s]["data"][i][key] for key in "xy"],
    ),
}


class Scripted:
    """A model that says what it was told to."""

    name = "scripted"

    def __init__(self, *replies: ModelReply) -> None:
        self.replies = list(replies)
        self.written = 0

    async def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> ModelReply:
        reply = self.replies.pop(0)
        self.written += reply.written
        return reply


def _call(name: str, arguments: Any) -> ModelReply:
    return ModelReply("", (ToolCall("c1", name, json.dumps(arguments)),))


def template(name: str) -> ModelReply:
    """What a model writes for the chart of a library."""
    skeleton, sql, mappings, _ = CHARTS[name]
    items = [{"column": column, "path": path} for column, path in mappings.items()]
    return _call("fill_template", {"template": skeleton, "fills": [{"sql": sql, "mappings": items}]})


def expected() -> list[list[Point]]:
    """The points of the request, by series."""
    columns = json.loads(series.request())["series"]
    return [[(point["x"], point["y"]) for point in column["column"]] for column in columns]


def equal(name: str, chart: Any) -> int:
    """How many points of a filled chart are those of the request."""
    read = CHARTS[name][3]
    found = 0
    for s, points in enumerate(expected()):
        for i, (x, y) in enumerate(points):
            at, value = read(chart, s, i)
            same = datetime.fromisoformat(at) == datetime.fromisoformat(x)
            found += same and value == y and type(value) is type(y)
    return found


def run(*replies: ModelReply) -> tuple[hyve.Diagnosis, int]:
    """The answer to the request and the tokens that the model wrote for it."""
    request = hyve.Request("chart all series", (hyve.Payload("series", series.request()),), kind="answer")
    model = Scripted(*replies)
    with stages.load(request.payloads) as store:
        return asyncio.run(hyve.diagnose(request, store, model)), model.written


def main() -> int:
    """Prints the table; 1 if a chart isn't whole or a call is too long."""
    peak = 'SELECT series_idx, max(y) AS peak FROM "column" GROUP BY 1 ORDER BY 1'
    claim = {"text": "the peak is 2417.5 ms", "evidence": ['SELECT max(y) FROM "column" WHERE series_idx = 0']}
    conclusion = {"status": "conclusive", "summary": "p99 of checkout peaks at 2417.5 ms", "claims": [claim]}
    answer = ModelReply(json.dumps(conclusion))
    runs: dict[str, tuple[ModelReply, ...]] = {f"2, {name}": (template(name),) for name in CHARTS}
    runs = {"1": (answer,), **runs, "3": (_call("query_datastore", {"sql": peak}), answer)}
    print(
        "| mode | status | calls | data, tokens | first prompt | second prompt | written by the model | points equal |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    good = True
    for name, replies in runs.items():
        found, written = run(*replies)
        points = ""
        if found.charts:
            count = equal(name.removeprefix("2, "), found.charts[0])
            points = f"{count:,} of 2,304"
            good &= count == 2304 and written < MOST
        good &= found.status == "conclusive"
        tokens = found.tokens
        second = f"{tokens.follow_up:,}" if tokens.follow_up else ""
        cells = (name, found.status, found.calls, f"{tokens.original:,}", f"{tokens.prompt:,}", second, written, points)
        print(f"| {' | '.join(map(str, cells))} |")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
