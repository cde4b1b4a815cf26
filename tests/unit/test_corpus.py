"""Real files, the TOON datasets and the peer inputs: each comes back exactly and has the rows that its content has.

What is expected here was found by looking at the files (json, csv, grep), never by running the product: the values
are compared with what Python's own `json` and `csv` read, the row counts were written down by hand (H5-H13, H21-H23).
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import hyve
from hyve.strictjson import Pairs

CORPUS = Path(os.environ.get("HYVE_CORPUS", ""))
pytestmark = pytest.mark.skipif(
    not os.environ.get("HYVE_CORPUS"), reason="HYVE_CORPUS is not set: the corpus of real files is not checked"
)

EXPECTED: dict[str, dict[str, int]] = {
    # Keys, for each file: "$" rows of the root tables; "a.b[].c" rows of the table of that source path ("*": any key,
    # for maps whose keys are data); "lines" lines of free text; another bare word, a relation of that name;
    # "x?" rows that have a value in the column of source path x; "SELECT ..." the count that the statement returns.
    "alerts/alertmanager-v2-alerts.json": {"$": 9, "alerts": 9},
    "alerts/datadog-webhook.jsonl.txt": {"$": 43, "alerts": 43, "lines": 1},
    "alerts/karma-alerts.json": {
        "grids[].alertGroups[]": 1043,
        "grids[].alertGroups[].alerts[]": 2316,
        "grids[].alertGroups[].alerts[].alertmanager[]": 4632,
        "grids[].alertGroups[].alerts[].annotations[]": 2331,
        "counters[].values[]": 1049,
        "silences.*.*": 23,
        "alerts": 2316,
        "colors.*.*": 1017,
    },
    "alerts/robusta-issue.json": {
        "$": 1,
        "alerts": 1,
        "evidence[]": 4,
        "evidence[].data[]": 7,
        "evidence[].data[].data.rows[]": 15,
    },
    "cdc/debezium-schema-include.json": {
        "expected_snapshot.schema.fields[]": 6,
        "expected_snapshot.schema.fields[].fields[]": 114,
        "expected_binlog.schema.fields[]": 48,
        "changes": 2,
    },
    "cloud/cloudtrail.json": {
        "Records[]": 246,
        "cloudtrail_events": 246,
        "Records[].resources[]": 46,
        "Records[].requestParameters.filterSet.items[].valueSet.items[]": 28,
        "errorCode?": 24,
        "eventSource?": 246,
    },
    "cloud/ec2-describe-placebo.json": {
        "instances": 13,
        "data.Reservations[]": 13,
        "data.Reservations[].Instances[]": 13,
        "data.Reservations[].Instances[].NetworkInterfaces[]": 3,
        "data.Reservations[].Instances[].SecurityGroups[]": 3,
    },
    "cloud/redfish-truncated.json": {"$": 1, "Fans[]": 16, "Temperatures[]": 1, "Redundancy[]": 1},
    "elasticsearch/aggs-date-histogram.json": {
        "buckets": 27,
        "aggregations.results_buckets.buckets[]": 3,
        "aggregations.results_buckets.buckets[].date_histogram.buckets[]": 24,
    },
    "elasticsearch/search-hits.json": {
        "hits.hits[]": 8,
        "hits": 8,
        "hits.hits[]._source.span.stacktrace[]": 5,
        "hits.hits[]._source.error.exception[].stacktrace[]": 4,
    },
    "events/cloudevents-batch.json": {"$": 17, "cloud_events": 17},
    "k8s/authentication-pods.json": {
        "items[]": 2,
        "pods": 2,
        "containers": 2,
        "items[].spec.volumes[]": 16,
        "items[].spec.tolerations[]": 8,
        "items[].status.conditions[]": 8,
        'items[].metadata.annotations."k8s.v1.cni.cncf.io/networks-status"[]': 2,
    },
    "k8s/clusteroperators.json": {
        "items[]": 30,
        "items[].status.conditions[]": 115,
        "items[].status.relatedObjects[]": 201,
        "items[].status.versions[]": 48,
    },
    "k8s/kubectl-get-pods-wide.txt": {"NAMESPACE?": 80, "LABELS?": 80, "toolset_name?": 1, "schema_version?": 1},
    "llm/mcpchecker-eval.json": {
        "results[]": 6,
        "results[].callHistory.ToolCalls[]": 22,
        "results[].callHistory.ToolCalls[].result.content[]": 21,
        "results[].verifyOutput.Steps[]": 13,
        "summary.mcpServers[].tools[]": 10,
    },
    "llm/openrca-agent-telecom.csv": {"$": 51, "SELECT count(*) FROM records WHERE score_num = 1": 12},
    "logs/ansi-holmes-runner.txt": {
        "role?": 44,
        "tool_calls[]": 2,
        "SELECT count(*) FROM lines WHERE contains(text, 'LiteLLM completion()')": 88,
    },
    "logs/apm-intake-events-dupkeys.ndjson": {
        "$": 5,
        "spans": 2,
        "log_records": 1,
        "error.log.stacktrace[]": 2,
        "span.stacktrace[]": 2,
        "metricset.timestamp?": 1,
    },
    "logs/apm-intake-logs.ndjson": {"$": 8, "log_records": 7, "metadata.service.name?": 1, "log.message?": 7},
    "logs/auth-service.txt": {
        "$": 2,
        "lines": 4998,
        "SELECT count(*) FROM lines WHERE contains(text, 'login_failed')": 1228,
    },
    "logs/coralogix-nested-userdata.txt": {
        "result.results[]": 100,
        "result.results[].labels[]": 300,
        "result.results[].metadata[]": 600,
        "userData.kubernetes.pod_name?": 100,
    },
    "logs/kafka-state-change.log": {"lines": 506, "SELECT count(*) FROM lines WHERE contains(text, '] TRACE ')": 470},
    "logs/m365-defender.ndjson": {"$": 9, "ActivityObjects[]": 7, "DeviceId?": 5},
    "logs/nginxplus-status.ndjson": {
        "$": 250,
        "server_zones.*": 750,
        "upstreams.*": 1000,
        "upstreams.*.peers[]": 1750,
        "stream.upstreams.*.peers[]": 1000,
    },
    "logs/pino-mixed.txt": {
        "$": 3288,
        "lines": 1645,
        "log_records": 3286,
        "res.statusCode?": 1642,
        "req.method?": 1642,
    },
    "logs/s3-honeybucket-pyrepr.csv": {
        "$": 301,
        "User ID.type?": 301,
        "Request Parameters.bucketName?": 301,
        "SELECT count(*) FROM records WHERE Event_Name = 'HeadBucket'": 159,
    },
    "logs/surrogates.ndjson": {"$": 300, "log_records": 300, "seq?": 300},
    "logs/windows-events.ndjson": {
        "$": 700,
        "log_records": 700,
        "SELECT count(*) FROM records WHERE EventID = 4703": 83,
        "SELECT count(*) FROM records WHERE Keywords = -9223372036854775808": 464,
    },
    "logs/zeek-combined.ndjson": {
        "$": 5664,
        "uid?": 2629,
        "SELECT count(*) FROM records WHERE \"stream\" = 'conn'": 1172,
    },
    "logs/ztunnel.log": {"lines": 28, "SELECT count(*) FROM lines WHERE contains(text, 'bytes_sent=')": 28},
    "loki/query-range-streams.json": {"$": 1, "data.result[]": 1, "data.result[].values[]": 5, "log_records": 5},
    "metrics/cloudwatch-firehose-records.json": {"records[]": 4, "metric_points": 1160},
    "metrics/couchbase-bucket-stats.json": {"op.samples.*": 215, "op.samples.*[]": 12900, "hot_keys[]": 1},
    "metrics/opensre-rds-cpu-saturation.json": {
        "metric_data_results[].dimensions[]": 20,
        "timestamps?": 400,
        "stat?": 20,
        "metric_points": 400,
    },
    "metrics/otel-demo-metrics.jsonl": {"$": 6624, "unit?": 4320},
    "metrics/solr-mbeans-nan.json": {
        "solr-mbeans[]": 8,
        "solr-mbeans[].*": 40,
        "stats.avgTimePerRequest?": 20,
    },
    "otlp/fluentbit-otlp-log-cases.json": {
        "*": 61,
        "*.input.resourceLogs[]": 62,
        "*.input.resourceLogs[].scopeLogs[]": 63,
        "*.input.resourceLogs[].scopeLogs[].logRecords[]": 75,
    },
    "otlp/fluentbit-otlp-metric-cases.json": {
        "*": 40,
        "*.input.resourceMetrics[]": 38,
        "*.input.resourceMetrics[].scopeMetrics[].metrics[]": 36,
    },
    "otlp/jaeger-otlp-traces.json": {
        "spans": 4,
        "span_links": 8,
        "resourceSpans[].scopeSpans[].spans[]": 4,
        "resourceSpans[].scopeSpans[].spans[].attributes[]": 16,
        "resourceSpans[].scopeSpans[].spans[].links[]": 8,
    },
    "otlp/proto-example-metrics.json": {
        "metric_points": 4,
        "resourceMetrics[].scopeMetrics[].metrics[]": 4,
        "resourceMetrics[].scopeMetrics[].metrics[].exponentialHistogram.dataPoints[]": 1,
    },
    "otlp/tempo-batches-base64-ids.json": {
        "spans": 8,
        "batches[]": 6,
        "batches[].scopeSpans[].spans[].attributes[]": 160,
    },
    "otlp/tempo-search.json": {
        "traces": 1,
        "spans": 4,
        "traces[].spanSet.spans[]": 4,
        "traces[].spanSets[].spans[].attributes[]": 31,
    },
    "prometheus/cluster-metrics.prom.txt": {"lines": 137, "metric_points": 125},
    "prometheus/holmes-range-query.txt": {
        "$": 3,
        "data.result[]": 8,
        "data.result[].values[]": 248,
        "metric_points": 248,
    },
    "prometheus/holmes-rules.txt": {
        "$": 3,
        "alerts": 25,
        "groups[]": 34,
        "groups[].rules[]": 233,
        "groups[].rules[].alerts[]": 25,
    },
    "prometheus/promql-corpus.json": {
        "datasets[]": 66,
        "datasets[].series[]": 253,
        "datasets[].series[].samples[]": 25631,
        "cases[]": 755,
        "cases[].expected[]": 1230,
        "cases[].expected[].points[]": 1782,
    },
    "prometheus/vm-instant-vector.json": {"$": 219, "metric_points": 219},
    "rca/nezha-currency-metric.csv": {"$": 1209},
    "rca/nezha-fault-list.json": {"*": 5, "*[]": 24},
    "rca/nezha-log-0520.csv": {"$": 2999, "SELECT count(DISTINCT PodName) FROM records": 10, "Log.stream?": 2999},
    "rca/nezha-trace-0520.csv": {"$": 5321, "SELECT count(*) FROM records WHERE ParentID = 'root'": 116},
    "traces/zipkin-smartthings.json": {"$": 1041, "annotations[]": 92, "spans": 1037},
    "toon/v2-2026-03/analytics": {"metrics[]": 60},
    "toon/v2-2026-03/event-logs": {"logs[]": 75, "error.message?": 33},
    "toon/v2-2026-03/github": {"repositories[]": 100},
    "toon/v2-2026-03/nested": {"orders[]": 50, "orders[].items[]": 130},
    "toon/v2-2026-03/nested-config": {
        "database.replicas[]": 3,
        "authentication.providers[]": 2,
        "permissions.roles.*": 3,
    },
    "toon/v2-2026-03/structural-validation-control": {"employees[]": 20},
    "toon/v2-2026-03/structural-validation-extra-rows": {"employees[]": 23},
    "toon/v2-2026-03/structural-validation-missing-fields": {"employees[]": 20},
    "toon/v2-2026-03/structural-validation-truncated": {"employees[]": 17},
    "toon/v2-2026-03/structural-validation-width-mismatch": {"employees[]": 20},
    "toon/v2-2026-03/tabular": {"employees[]": 100},
    "toon/v4/analytics": {"metrics[]": 60},
    "toon/v4/event-logs": {"logs[]": 75, "error.message?": 32},
    "toon/v4/github": {"repositories[]": 100},
    "toon/v4/keyed": {"flags.*": 40},
    "toon/v4/nested": {"orders[]": 50, "orders[].items[]": 120},
    "toon/v4/nested-config": {"database.replicas[]": 3, "authentication.providers[]": 2, "permissions.roles.*": 3},
    "toon/v4/nested-group": {"contacts[]": 50},
    "toon/v4/structural-validation-control": {"employees[]": 20},
    "toon/v4/structural-validation-extra-rows": {"employees[]": 20},
    "toon/v4/structural-validation-missing-fields": {"employees[]": 20},
    "toon/v4/structural-validation-truncated": {"employees[]": 20},
    "toon/v4/structural-validation-width-mismatch": {"employees[]": 20},
    "toon/v4/tabular": {"employees[]": 100},
    "peers/a_metrics.json": {"rows[]": 2304},
    "peers/b_pods.json": {
        "$": 5000,
        "pods": 5000,
        "containers": 5000,
        "spec.containers[]": 5000,
        "status.containerStatuses[]": 5000,
    },
    "peers/c_logs.json": {"$": 10000, "log_records": 10000, "SELECT count(*) FROM records WHERE level = 'ERROR'": 5},
    "peers/c2_logs_quiet_needles.json": {
        "$": 10000,
        "log_records": 10000,
        "SELECT count(*) FROM records WHERE contains(msg, 'otter')": 5,
    },
    "peers/c3_logs_many_errors.json": {
        "$": 10000,
        "log_records": 10000,
        "SELECT count(*) FROM records WHERE level = 'ERROR'": 3000,
    },
    "peers/d_otlp.json": {
        "spans": 3000,
        "resourceSpans[]": 12,
        "resourceSpans[].scopeSpans[].spans[]": 3000,
        "resourceSpans[].scopeSpans[].spans[].attributes[]": 9000,
        "SELECT count(*) FROM spans WHERE status = 'error'": 3,
    },
    "peers/e_prom.json": {"data.result[]": 50, "data.result[].values[]": 25000, "metric_points": 25000},
    "peers/f_mixed.txt": {"deploy.app?": 1, "sev?": 120, "node?": 150, "trace_id?": 166, "msg?": 165},
}

MENDED = {"cloud/redfish-truncated.json": ('"Name": System Board Fan1A,', '"Name": "System Board Fan1A",')}
"""Files that are not valid JSON: what stands there, and what it has to be read as."""

PEERS = [name.removeprefix("peers/") for name in EXPECTED if name.startswith("peers/")]
SPECIAL = frozenset({"repaired", "duplicate_keys", "truncated", "python_literal", "non_finite", "lone_surrogate",
                     "rounded_number", "number_as_text", "too_deep", "ragged_rows", "bom", "invalid_utf8"})  # fmt: skip


@dataclass(frozen=True)
class Loaded:
    name: str
    text: str
    document: hyve.Document
    store: hyve.Datastore

    @property
    def values(self) -> list[Any]:
        """The values of the parts that are no free text."""
        return [part.value for part in self.document.parts if part.syntax != "lines"]


def path_of(name: str, peers: Path | None = None) -> Path:
    kind, _, rest = name.partition("/")
    if kind == "peers":
        assert peers is not None
        return peers / rest
    if kind == "toon":
        version, _, stem = rest.partition("/")
        return CORPUS / "toon" / version / "datasets" / f"{stem}.json"
    return CORPUS / "real" / name


def load(path: Path, name: str) -> Loaded:
    source = path.read_bytes()
    document = hyve.parse(source)
    return Loaded(name, source.decode(), document, hyve.Datastore.from_document(document))


@pytest.fixture(scope="session")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    maker = CORPUS.parent / "bench" / "peers" / "make_inputs.py"
    if not maker.is_file():
        pytest.skip(f"{maker} is not there: the peer inputs are not checked")
    folder = tmp_path_factory.mktemp("peers")
    environment = {key: value for key, value in os.environ.items() if key != "SEED"}
    subprocess.run([sys.executable, str(maker), str(folder)], check=True, capture_output=True, env=environment)
    return folder


@pytest.fixture(scope="module", params=list(EXPECTED))
def loaded(request: pytest.FixtureRequest) -> Iterator[Loaded]:
    """One file, parsed and stored once for all tests of this module."""
    name: str = request.param
    folder = request.getfixturevalue("peers") if name.startswith("peers/") else None
    found = load(path_of(name, folder), name)
    yield found
    found.store.close()


def difference(got: Any, want: Any) -> str | None:
    """Where two values differ first (in type, key order, number type or float bits), else None."""
    if type(got) is not type(want):
        return f": {type(got).__name__} {got!r:.80} is not {type(want).__name__} {want!r:.80}"
    if type(want) is dict:
        if list(got) != list(want):
            return f": keys {list(got)!r:.200} are not {list(want)!r:.200}"
        steps: Any = ((key, got[key], want[key]) for key in want)
    elif isinstance(want, list | tuple):
        if len(got) != len(want):
            return f": {len(got)} items are not {len(want)}"
        steps = ((i, *pair) for i, pair in enumerate(zip(got, want, strict=True)))
    elif type(want) is float:
        return None if got.hex() == want.hex() else f": {got!r} is not {want!r}"
    else:
        return None if got == want else f": {got!r:.120} is not {want!r:.120}"
    for step, left, right in steps:
        if (found := difference(left, right)) is not None:
            return f".{step}{found}"
    return None


def test_difference_sees_what_equality_does_not() -> None:
    assert difference({"a": [1, 2.0, None, "x"]}, {"a": [1, 2.0, None, "x"]}) is None
    assert difference([float("nan")], [float("nan")]) is None
    assert difference(Pairs([("a", 1), ("a", 2)]), Pairs([("a", 1), ("a", 2)])) is None
    for got, want in (
        (1, 1.0),
        (0.0, -0.0),
        (True, 1),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": None}, {}),
        ([], {}),
        (Pairs([("a", 1)]), {"a": 1}),
        (Pairs([(1, 1)]), Pairs([(True, 1)])),
    ):
        assert difference(got, want) is not None, (got, want)
    assert difference({"a": [{"b": 1}]}, {"a": [{"b": 2}]}) == ".a.0.b: 1 is not 2"


def read_json(text: str) -> list[Any]:
    """The documents that Python's own reader finds in a text of nothing but JSON; [] for any other text."""

    def keep(pairs: list[tuple[str, Any]]) -> Any:
        value = dict(pairs)
        return value if len(value) == len(pairs) else Pairs(pairs)

    decoder, at = json.JSONDecoder(object_pairs_hook=keep), 0
    found: list[Any] = []
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
        elif text[at] in "{[":
            try:
                value, at = decoder.raw_decode(text, at)
            except ValueError:
                return []
            found.append(value)
        else:
            return []
    return found


def json_on_its_own_lines(text: str) -> list[Any]:
    """Documents that start at the start of a line and end at the end of one, in a text that holds other lines too."""
    decoder, at = json.JSONDecoder(), 0
    found: list[tuple[Any, int]] = []
    for line in text.split("\n"):
        start, end = at, at + len(line) + 1
        if line[:1] in ("{", "[") and (not found or start >= found[-1][1]):
            try:
                value, stop = decoder.raw_decode(text, start)
            except ValueError:
                value = None
            if value and not text[stop : text.find("\n", stop) % (len(text) + 1)].strip():
                found.append((value, stop))
        at = end
    return [value for value, _ in found]


def test_the_corpus_is_all_there() -> None:
    real = {str(path.relative_to(CORPUS / "real")) for path in CORPUS.glob("real/*/*") if path.is_file()}
    toon = {f"toon/{path.parts[-3]}/{path.stem}" for path in CORPUS.glob("toon/*/datasets/*.json")}
    assert (len(real), len(toon), len(PEERS)) == (52, 24, 8)
    assert set(EXPECTED) == real | toon | {f"peers/{name}" for name in PEERS}


def test_every_part_comes_back_from_the_tables(loaded: Loaded) -> None:
    """Invariant 1: key order, types and float bits included."""
    assert loaded.document.parts
    for i, part in enumerate(loaded.document.parts):
        found = difference(loaded.store.reconstruct(i), part.value)
        assert found is None, f"part {i}{found}"


def test_parts_are_what_pythons_own_readers_read(loaded: Loaded) -> None:
    text = loaded.text
    if loaded.name in MENDED:
        broken, mended = MENDED[loaded.name]
        assert text.count(broken) == 1
        text = text.replace(broken, mended)
    if loaded.name.endswith(".csv"):
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        assert difference(loaded.values, [[dict(zip(header, row, strict=True)) for row in rows]]) is None
        return
    whole = read_json(text)
    if whole:
        found = difference(loaded.values, whole)
        assert found is None, found
        return
    pool = iter(loaded.values)
    for value in json_on_its_own_lines(text):
        assert any(difference(candidate, value) is None for candidate in pool), f"not found: {value!r:.200}"


def test_flags_say_what_was_met_and_nothing_else(loaded: Loaded) -> None:
    """H8: nothing is repaired silently, and no flag cries wolf: `"NaN"` in a string is text."""
    met: set[str] = set()

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) != len(items):
            met.add("duplicate_keys")
        for item in (text for pair in items for text in pair if type(text) is str):
            if re.search("[\ud800-\udfff]", item):
                met.add("lone_surrogate")
        return value

    def real(digits: str) -> float:
        if Decimal(digits) != Decimal(repr(float(digits))):
            met.add("rounded_number")
        return float(digits)

    def constant(_: str) -> float:
        met.add("non_finite")
        return 0.0

    if loaded.name in MENDED:
        met.add("repaired")
    elif loaded.name in ("logs/ansi-holmes-runner.txt", "peers/f_mixed.txt"):
        met.add("python_literal")
        met |= {"truncated"} if loaded.name == "peers/f_mixed.txt" else set()
    elif not loaded.name.endswith(".csv") and read_json(loaded.text):
        decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_float=real, parse_constant=constant)
        at = 0
        while at < len(loaded.text.rstrip()):
            _, at = decoder.raw_decode(loaded.text, re.compile(r"\s*").match(loaded.text, at).end())  # type: ignore[union-attr]
    assert set(loaded.document.flags) & SPECIAL == met


def test_lines_hold_all_text_that_no_part_covers(loaded: Loaded) -> None:
    text, covered = loaded.text, sorted(part.span for part in loaded.document.parts if part.syntax != "lines")
    assert all(left[1] <= right[0] for left, right in pairwise(covered)), "parts overlap"
    pieces: dict[int, str] = {}
    number, at = 1, 0
    for start, end in [*covered, (len(text), len(text))]:
        for i, piece in enumerate(text[at:start].split("\n"), number):
            if piece.strip():
                pieces[i] = pieces.get(i, "") + piece
        number, at = number + text.count("\n", at, end), end
    found = []
    if loaded.store.catalog.table("lines") is not None:
        found = loaded.store.fetch("SELECT line, text FROM lines")
    assert [line for line, _ in found] == list(pieces)
    whole = text.split("\n")
    assert all(shown.strip() in (whole[i - 1].strip(), pieces[i].strip()) for i, shown in found)


def count(store: hyve.Datastore, key: str) -> int | str:
    """The number of rows that a key of EXPECTED means, or what stands in the way of telling it."""
    if key.startswith("SELECT"):
        try:
            return int(str(store.query(key).rows[0][0]))
        except hyve.HyveError as error:
            return str(error)
    if key.endswith("?"):
        holders = {t: c.name for t in store.catalog.tables for c in reversed(t.columns) if c.path == key[:-1]}
        found = {table: f'"{column}"' for table, column in holders.items() if table.kind != "relation"}
    elif not set(key) & set("$[*."):
        kinds = ("base", "derived") if key == "lines" else ("relation",)
        found = {t: "*" for t in store.catalog.tables if t.name == key and t.kind in kinds}
    else:
        wanted = re.compile(re.escape(key).replace(r"\*", r"[^\[\]]+"))
        tables = [t for t in store.catalog.tables if t.kind != "relation" and (t.path != "$" or key == "$")]
        found = {t: "*" for t in tables if wanted.fullmatch(t.path.lstrip("."))}
    if {table.path for table in found} != {"$"} and len(found) != 1:  # only roots may be several tables
        return f"in the tables {[table.name for table in found]}"
    counts = [int(store.fetch(f'SELECT count({what}) FROM "{table.name}"')[0][0]) for table, what in found.items()]
    told = [table.rows for table, what in found.items() if what == "*"]
    return sum(counts) if told in ([], counts) else f"{counts} rows, the catalog says {told}"


def test_tables_have_the_rows_that_the_file_has(loaded: Loaded) -> None:
    expected = EXPECTED[loaded.name]
    assert {key: count(loaded.store, key) for key in expected} == expected
