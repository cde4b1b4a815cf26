"""Large data: inline as far as a record goes, above that by a claim, put by `hyve request`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas import DiagnosisRequest, DiagnosisResult
from streams.submit import request
from tests.integration.pipeline import Pipeline

pytestmark = pytest.mark.apache


def logs(path: Path, megabytes: float) -> int:
    """NDJSON of so many megabytes; its number of records."""
    rows = int(megabytes * 1_000_000 / 127)
    with path.open("w") as file:
        for i in range(rows):
            level = "error" if i == rows // 2 else "info"
            row = {"time": f"2026-01-02T03:{i // 60 % 60:02}:{i % 60:02}Z", "level": level, "service": f"s{i % 9}"}
            file.write(json.dumps({**row, "n": i, "message": f"request {i} was served {'x' * 20}"}) + "\n")
    return rows


def test_thirty_megabytes_go_inline_and_more_by_a_claim(make_pipeline: Callable[..., Pipeline], tmp_path: Path) -> None:
    root = f"file://{tmp_path}/claims"
    pipeline = make_pipeline("large", HYVE_CLAIM_URL=root).start("store", "llm")

    def hyve(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **pipeline.environment("store"), "HYVE_CLAIM_URL": root, "COLUMNS": "120", **more}
        return subprocess.run(
            [sys.executable, "-m", "streams.cli", "request", *arguments],
            capture_output=True, text=True, timeout=300, env=env, check=False,
        )  # fmt: skip

    inline, claimed = tmp_path / "inline.ndjson", tmp_path / "claimed.ndjson"
    rows = {"inline": logs(inline, 30), "claimed": logs(claimed, 8)}
    assert inline.stat().st_size < 32 << 20
    found: dict[str, Any] = {}
    for name, path, limit in (("inline", inline, 32 << 20), ("claimed", claimed, 4 << 20)):
        arguments = ("--file", str(path), "--id", name, "--json", "--answer")
        done = hyve("which service fails?", *arguments, HYVE_CLAIM_BYTES=str(limit))
        assert done.returncode == 0, done.stderr + pipeline.logs()
        found[name] = DiagnosisResult.model_validate_json(done.stdout)
        assert found[name].status != "failed", found[name].summary
        assert found[name].tokens.original > rows[name] * 20, "all of the data was read"
    sent = {it.request_id: it for it in (DiagnosisRequest.from_bytes(r.value) for r in pipeline.records("requests"))}
    assert sent["inline"].payloads[0].url == ""
    assert sent["claimed"].payloads[0].url.startswith(root)
    assert sent["claimed"].payloads[0].text == ""

    # A claim that was lost is a failed result that says so, not a hanging request.
    lost = request(pipeline.settings.model_copy(update={"claim_url": root, "claim_bytes": 1024}), "?", ())
    gone = sent["claimed"].payloads[0].model_copy(update={"url": f"{root}/2026-01-02/{'0' * 32}.gz"})
    pipeline.send("requests", "lost", lost.model_copy(update={"request_id": "lost", "payloads": (gone,)}).to_bytes())
    answer = pipeline.result("lost")
    assert answer.status == "failed"
    assert "can't be read" in answer.summary

    refused = hyve("?", "--file", str(tmp_path / "none"))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert hyve("?", "--file", str(inline), "--id", "later", "--wait", "0").stdout == "later\n"
