"""`hyve ask`, `view` and `sql` as a user runs them: what they print, and how they fail."""

from __future__ import annotations

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.command import HYVE, environment

ROWS = [{"service": "cart" if i % 3 else "ledger", "ms": 10 if i % 3 else 900, "n": i} for i in range(2000)]


def hyve(*arguments: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*HYVE, *arguments],
        input=stdin,
        capture_output=True,
        env=environment(**env),
        timeout=120,
        check=False,
    )


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps(ROWS))
    return str(file)


def test_sql_json(rows: str) -> None:
    done = hyve("sql", "--file", rows, "--json", "SELECT service, count(*) AS n FROM records GROUP BY 1 ORDER BY 1")
    assert json.loads(done.stdout) == {"columns": ["service", "n"], "rows": [["cart", 1333], ["ledger", 667]]}
    assert (done.returncode, done.stderr) == (0, b"")


def test_sql_table_from_standard_input() -> None:
    done = hyve("sql", "--file", "-", "SELECT max(ms) AS slowest FROM records", stdin=json.dumps(ROWS).encode())
    assert b"slowest" in done.stdout
    assert b"900" in done.stdout
    assert b"1 row" in done.stdout


def test_view_json(rows: str) -> None:
    done = hyve("view", "--file", rows, "--question", "what is slow?", "--budget", "1500", "--json")
    found = json.loads(done.stdout)
    assert set(found) == {"prompt", "tokens", "tables", "flags", "ms"}
    assert found["tables"] == [{"name": "records", "columns": ["_row_id", "service", "ms", "n"], "rows": 2000}]
    assert found["tokens"]["prompt"] <= 1500 < found["tokens"]["original"]
    assert "2,000 rows" in found["prompt"]
    assert found["prompt"].count("what is slow?") == 1


def test_view_says_what_it_saved(rows: str) -> None:
    done = hyve("view", "--file", rows, "--budget", "1500")
    text = done.stdout.decode()
    assert "% saved" in text
    assert "ledger ×667" in text


def test_ask_json_is_a_diagnosis_result(rows: str) -> None:
    done = hyve("ask", "--file", rows, "what is slow?", "--json")
    found = json.loads(done.stdout)
    assert (found["mode"], found["status"], found["question"]) == ("rules", "inconclusive", "what is slow?")
    assert found["tokens"]["original"] > found["tokens"]["prompt"] > 0


def test_ask_names_the_analyst_first(rows: str) -> None:
    done = hyve("ask", "--file", rows, "what is slow?")
    assert "rules analyst" in done.stdout.decode().splitlines()[0]


@pytest.mark.parametrize("command", [["ask", "why?"], ["view"], ["sql", "SELECT 1"]])
@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot read"), (b"", "is empty"), (b"\x00\x01\x02\x03" * 400, "is binary"), (b" \n\n", "is empty")],
)
def test_bad_files_are_one_line_and_status_2(
    tmp_path: Path, command: list[str], content: bytes | None, said: str
) -> None:
    file = tmp_path / "in put.dat"
    if content is not None:
        file.write_bytes(content)
    done = hyve(*command, "--file", str(file))
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().count("\n") == 1
    assert said in done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", "why?"], "--file"),
        (["ask", "--file", "."], "is a folder"),
        (["sql", "--file", "{rows}", "DROP TABLE records"], "SELECT"),
        (["sql", "--file", "{rows}", "SELECT latency FROM records"], "latency"),
        (["sql", "--file", "{rows}", "SELECT * FROM read_text('/etc/passwd')"], "read_text"),
        (["view", "--file", "{rows}", "--budget", "50"], "smallest"),
    ],
)
def test_bad_arguments_are_one_line_and_status_2(rows: str, arguments: list[str], said: str) -> None:
    done = hyve(*(argument.replace("{rows}", rows) for argument in arguments))
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1
    assert said in done.stderr.decode()


def test_a_model_that_cannot_be_reached_leaves_the_answer_to_the_rules(rows: str) -> None:
    model = {"HYVE_LLM_BASE_URL": "http://127.0.0.1:9/v1", "HYVE_LLM_MODEL": "m", "HYVE_LLM_TIMEOUT": "2"}
    done = hyve("ask", "--file", rows, "what is slow?", "--json", HYVE_LLM_API_KEY="sk-secret", **model)
    found = json.loads(done.stdout)
    assert found["mode"] == "rules"
    assert any("rules analyst" in note and "check HYVE_LLM_BASE_URL" in note for note in found["notes"])
    assert b"sk-secret" not in done.stdout + done.stderr


def test_a_base_url_without_a_model_is_said(rows: str) -> None:
    done = hyve("ask", "--file", rows, "?", HYVE_LLM_BASE_URL="http://127.0.0.1:9/v1")
    assert done.returncode == 2
    assert "HYVE_LLM_MODEL" in done.stderr.decode()


class _Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


def test_a_model_that_refuses_the_key_is_one_line_and_status_2(rows: str) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        done = hyve("ask", "--file", rows, "?", HYVE_LLM_BASE_URL=url, HYVE_LLM_MODEL="m")
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.decode().count("\n") == 1
        assert "HYVE_LLM_API_KEY is not set" in done.stderr.decode()
        done = hyve("ask", "--file", rows, "?", HYVE_LLM_BASE_URL=url, HYVE_LLM_MODEL="m", HYVE_LLM_API_KEY="sk-x")
        assert "rejected HYVE_LLM_API_KEY" in done.stderr.decode()
        assert "sk-x" not in done.stderr.decode()
    finally:
        server.shutdown()


def test_sql_json_says_when_rows_were_capped(rows: str) -> None:
    done = hyve("sql", "--file", rows, "--json", "SELECT a.n FROM records a, range(10)")
    found = json.loads(done.stdout)
    assert (len(found["rows"]), found["total_rows"]) == (10_000, 20_000)
    assert "10,000 of 20,000" in done.stderr.decode()


def test_a_few_log_lines_are_a_table() -> None:
    done = hyve("sql", "--file", "-", "--json", "SELECT line, text FROM lines", stdin=b"a warning\nERROR disk full\n")
    assert json.loads(done.stdout)["rows"] == [[1, "a warning"], [2, "ERROR disk full"]]


def test_deep_nesting_is_text_not_a_traceback() -> None:
    done = hyve("view", "--file", "-", stdin=b"[" * 700 + b"]" * 700)
    assert (done.returncode, done.stderr) == (0, b"")


def test_version() -> None:
    assert hyve("--version").stdout.decode().startswith("hyve 0.")
