"""`python -m schemas` writes the JSON Schema file of every record's present version to `schemas/json/` (the same bytes
every time): `requests.v1.json`, and `requests.v2.json` beside it once there is one.

Files of earlier versions are published: they stay as they are. A change that breaks readers or writers of the version
that stands there is not written; the errors say what it is, and `schemas.contracts` what to do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from schemas import contracts
from schemas.records import Record
from schemas.topics import TOPICS

FOLDER = Path(__file__).parent / "json"


def records() -> dict[str, type[Record]]:
    """The record of each topic that has one of ours."""
    return {topic.name: topic.record for topic in TOPICS if topic.record is not None}


def file_name(topic: str, version: int) -> str:
    """Where the contract of a topic's record stands."""
    return f"{topic}.v{version}.json"


def document(topic: str, record: type[Record]) -> str:
    """The JSON Schema of `record` as it is now."""
    version = record.contract()
    schema: dict[str, Any] = record.model_json_schema()
    if version > 1:  # a record without a version is of version 1
        del schema["properties"]["version"]["default"]
        schema["required"] = [*schema.get("required", ()), "version"]
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:hyve:{topic}:v{version}", **schema}
    return json.dumps(named, indent=2, sort_keys=True) + "\n"


def faults(topic: str, record: type[Record], folder: Path = FOLDER) -> Iterable[str]:
    """Why the contract of `record` may not be published as it is."""
    version, new = record.contract(), json.loads(document(topic, record))
    for number in range(1, version):
        if not (folder / file_name(topic, number)).exists():
            yield f"{file_name(topic, number)} is missing: published files are kept"
    if version > 1 and not contracts.has_step(record.__name__, version - 1):
        yield f"there is no step from version {version - 1} to {version}: register one with schemas.contracts.upgrade"
    if (path := folder / file_name(topic, version)).exists():
        for fault in contracts.incompatible(json.loads(path.read_text("utf-8")), new):
            yield f"{fault}: that needs version {version + 1}"
    if (path := folder / file_name(topic, version - 1)).exists():
        for fault in contracts.unreadable_before(json.loads(path.read_text("utf-8")), new):
            yield f"{fault}: a reader of version {version - 1} can't read that"


def main(folder: Path = FOLDER, wanted: dict[str, type[Record]] | None = None) -> int:
    """Writes what differs and names each file that changed; 1 where a change may not be, and nothing is written."""
    wanted = records() if wanted is None else wanted
    found = [f"{topic}: {fault}" for topic, record in wanted.items() for fault in faults(topic, record, folder)]
    if found:
        sys.stderr.write("".join(f"{line}\n" for line in found))
        return 1
    folder.mkdir(exist_ok=True)
    for topic, record in wanted.items():
        name, text = file_name(topic, record.contract()), document(topic, record)
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"wrote {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
