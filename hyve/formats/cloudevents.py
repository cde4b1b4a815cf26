"""CloudEvents 1.0 and 0.3 in structured mode, single or in a batch, as rows of `cloud_events`.

Rules: `data` is what the event carries: `data_base64`, and text that holds JSON, are decoded; bytes that are no text
stay in base64. Extension attributes are in `extensions`.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.packed import as_text, from_base64, read_json
from hyve.formats.recogniser import needs
from hyve.formats.rows import known
from hyve.formats.scalars import Relations, Row, rfc3339_ns, text

_REQUIRED = frozenset({"specversion", "id", "source", "type"})
_CONTEXT = _REQUIRED | {
    "subject",
    "time",
    "datacontenttype",
    "dataschema",
    "schemaurl",
    "datacontentencoding",
    "data",
    "data_base64",
}


@needs("specversion id source type")
def recognise(value: Any) -> Relations | None:
    """The row of `cloud_events`, or None. A batch is a list of events."""
    if type(value) is not dict or not value.keys() >= _REQUIRED or type(value["specversion"]) is not str:
        return None
    return {"cloud_events": [_row(value)]}


def _row(event: dict[str, Any]) -> Row:
    return {
        "time": rfc3339_ns(event.get("time")),
        "id": text(event["id"]),
        "source": text(event["source"]),
        "type": text(event["type"]),
        "subject": known(event.get("subject")),
        "datacontenttype": known(event.get("datacontenttype")),
        "dataschema": known(event.get("dataschema") or event.get("schemaurl")),
        "extensions": {key: inner for key, inner in event.items() if key not in _CONTEXT},
        "data": _data(event),
    }


def _data(event: dict[str, Any]) -> Any:
    data = event.get("data")
    if data is None or event.get("datacontentencoding") == "base64":  # 0.3 names the encoding
        packed = event.get("data_base64") if data is None else data
        decoded = as_text(from_base64(packed))
        data = packed if decoded is None else decoded
    if type(data) is str and data.lstrip()[:1] in ("{", "["):
        inner = read_json(data)
        return data if inner is None else inner
    return data
