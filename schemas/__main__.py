"""`python -m schemas` writes the JSON Schema file of every record to `schemas/json/` (the same bytes every
time)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from schemas.topics import TOPICS

FOLDER = Path(__file__).parent / "json"


def documents() -> dict[str, str]:
    """File name -> JSON Schema text, for each topic that has a record of ours."""
    return {
        f"{topic.name}.json": json.dumps(topic.record.model_json_schema(), indent=2, sort_keys=True) + "\n"
        for topic in TOPICS
        if topic.record is not None
    }


def main() -> int:
    """Writes what differs, removes what is no longer there, and names each file that changed."""
    FOLDER.mkdir(exist_ok=True)
    wanted = documents()
    for name, text in wanted.items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            sys.stdout.write(f"wrote {name}\n")
    for path in FOLDER.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
            sys.stdout.write(f"removed {path.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
