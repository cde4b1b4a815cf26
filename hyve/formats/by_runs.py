"""The relations of one very long list, found run by run.

Rules:
- The rows of all runs, one after the other, are those of the whole list. So only formats are read that take the items
  of their list one by one (`SEPARABLE`), and no other may have a say in any run; items that are messages of their own
  are always read one by one.
- What a stream format needs is gathered from all runs, and read at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from hyve.formats import (
    alertmanager,
    azure,
    cloudtrail,
    cloudwatch,
    cloudwatch_logs,
    ec2,
    gcp,
    kubernetes,
    log_envelopes,
    loki,
    otlp,
    packed,
    prometheus,
    tempo,
    zipkin,
)
from hyve.formats.recogniser import Found, Recogniser
from hyve.formats.telemetry import Finder, normalised
from hyve.formats.wire import Record
from hyve.longlists import Keys


class Separable(NamedTuple):
    """The lists, by their key, whose items a format takes one by one ("" is a list that is the whole value), and the
    order in which it names its relations, if that isn't the order of their first rows."""

    lists: frozenset[str]
    names: tuple[str, ...] = ()


SEPARABLE: dict[Recogniser, Separable] = {
    alertmanager.recognise: Separable(frozenset({"alerts", ""})),
    azure.recognise: Separable(frozenset({"records", "value"})),
    cloudtrail.recognise: Separable(frozenset({"Records", "Events"})),
    cloudwatch.recognise: Separable(frozenset({"MetricDataResults", "metric_data_results", "metrics", "Datapoints"})),
    cloudwatch_logs.recognise: Separable(frozenset({"logEvents", "events"})),
    ec2.recognise: Separable(frozenset({"Reservations"})),
    gcp.recognise: Separable(frozenset({"timeSeries"})),
    kubernetes.recognise: Separable(frozenset({"items"}), kubernetes.RELATIONS),
    log_envelopes.recognise: Separable(frozenset({"entries", "data"})),
    loki.recognise: Separable(frozenset({"result", "streams"})),
    otlp.recognise: Separable(
        frozenset(
            {"resourceSpans", "resourceLogs", "resourceMetrics", "batches", "scopeSpans", "scopeLogs", "scopeMetrics"}
            | {"spans", "logRecords", "metrics", "dataPoints"}
        ),
        otlp.RELATIONS,
    ),
    prometheus.recognise: Separable(frozenset({"result", "values", ""})),
    tempo.recognise: Separable(frozenset({"traces"}), ("traces", "spans")),
    zipkin.recognise: Separable(frozenset({"data"}), ("spans", "span_events", "span_links")),
}


class Inseparable(Exception):
    """The runs don't say what the whole list does: it has to be read at once."""


def find_runs(runs: Iterable[tuple[Any, list[Any]]], path: Keys, lines: bool = False) -> Iterator[Found]:
    """What is found in each of the runs of a list: (the document around the run, the run); `path` leads to the list.
    Or in runs of `lines`: (values of their own, rows of these). Raises Inseparable.
    """
    finder = Finder()
    for taken in _taken(finder, runs, path, lines):
        names = SEPARABLE[taken[0]].names if taken else ()
        found = {name: finder.merged.pop(name, []) for name in names} | finder.merged
        finder.merged = {}
        yield Found(found)
    yield from finder.streams()


def sort_out_runs(
    runs: Iterable[tuple[Any, list[Any]]], path: Keys, lines: bool = False
) -> Iterator[tuple[list[Record], list[dict[str, Any]]]]:
    """As `sort_out`, run by run: the records of each, and the objects in it that are no telemetry. Raises Inseparable
    also where the document around the list is one of them, something is no object, or runs must be read together."""
    finder = Finder(want_rest=True)
    for _ in _taken(finder, runs, path, lines):
        rest = finder.rest + finder.strays
        if finder.gathered or (path and finder.rest) or any(type(value) is not dict for value in rest):
            raise Inseparable
        found = normalised(finder.merged)
        finder.merged, finder.rest, finder.strays = {}, [], []
        yield found, rest


def _taken(
    finder: Finder, runs: Iterable[tuple[Any, list[Any]]], path: Keys, lines: bool
) -> Iterator[tuple[Recogniser, ...]]:
    """Lets the finder take each run, and says who knew the document around it."""
    taken: tuple[Recogniser, ...] | None = None
    one_by_one = lines
    with packed.bounded():
        for value, run in runs:
            finder.knew.clear()
            if one_by_one:
                finder.take_all(value if lines else run, inside=not lines)
            elif not path:
                one_by_one = not finder.take_list(run) and taken is None
                if one_by_one:
                    finder.take_all(run, inside=True)
            else:
                finder.take_all([value], inside=False)
            del value, run  # the next one is read now
            if not one_by_one:
                told = tuple(finder.knew)
                taken = _checked(told, path) if taken is None else taken
                if told != taken or finder.gathered:
                    raise Inseparable
            yield taken or ()


def _checked(taken: tuple[Recogniser, ...], path: Keys) -> tuple[Recogniser, ...]:
    key = path[-1] if path else ""
    if len(taken) > 1 or any(one not in SEPARABLE or key not in SEPARABLE[one].lists for one in taken):
        raise Inseparable
    return taken
