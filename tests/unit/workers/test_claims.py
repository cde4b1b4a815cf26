"""Data too large for a record: in a folder and in S3, read back exactly or not at all."""

from __future__ import annotations

import gzip
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hyve.errors import HyveError
from schemas import DiagnosisRequest, Payload
from workers import claims, errands

TEXT = '{"a": "é", "n": 1}\n' * 1000


def request(*sizes: int) -> DiagnosisRequest:
    payloads = tuple(Payload(name=f"p{i}", text="x" * size) for i, size in enumerate(sizes))
    return DiagnosisRequest(request_id="r", question="?", payloads=payloads)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return f"file://{tmp_path}/claims"


def test_what_is_claimed_comes_back(root: str) -> None:
    claimed = claims.put(root, Payload(name="logs", text=TEXT))
    assert claimed.text == ""
    assert claimed.size == len(TEXT.encode())
    assert claimed.url.startswith(f"{root}/{datetime.now(UTC):%Y}")
    again = Payload.model_validate_json(claimed.model_dump_json())
    assert claims.text(root, again) == TEXT
    assert claims.text(f"{root}/", again) == TEXT


@hypothesis_settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text())
def test_any_text_comes_back(tmp_path: Path, text: str) -> None:
    root = f"file://{tmp_path}/any"
    assert claims.text(root, claims.put(root, Payload(name="p", text=text))) == text


def test_the_largest_texts_are_claimed_first_and_no_more_than_needed(root: str) -> None:
    made = claims.check_in(root, request(10, 500, 300, 20), 400)
    assert [bool(payload.url) for payload in made.payloads] == [False, True, False, False]
    assert [claims.text(root, payload) for payload in made.payloads] == ["x" * n for n in (10, 500, 300, 20)]
    whole = request(10, 20)
    assert claims.check_in(root, whole, 400) == whole
    assert claims.check_in("", request(500), 400) == request(500)


def test_many_megabytes_that_pack_well_come_back(root: str) -> None:
    text = "0" * (40 << 20)
    claimed = claims.put(root, Payload(name="zeros", text=text))
    assert claims.text(root, claimed) == text


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "{root}x/2026-01-02/00000000000000000000000000000000.gz",
        "http://169.254.169.254/latest/meta-data",
        "s3://other/2026-01-02/00000000000000000000000000000000.gz",
    ],
)
def test_a_claim_that_points_elsewhere_is_refused_unread(root: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(*_: Any, **__: Any) -> None:
        raise AssertionError("the store was asked")

    monkeypatch.setattr(claims.fsspec.core, "url_to_fs", touched)
    payload = Payload(name="p", url=url.format(root=root), size=1, digest="0")
    with pytest.raises(HyveError, match="not below HYVE_CLAIM_URL"):
        claims.text(root, payload)


@pytest.mark.parametrize(
    "name",
    [
        *("../secret", "2026-01-02/../../secret.gz", "2026-01-02/0000000000000000000000000000000g.gz"),
        "2026-01-02/00000000000000000000000000000000.gz::http://evil.example/",
    ],
)
def test_a_claim_of_another_name_is_refused_unread(root: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims.fsspec.core, "url_to_fs", None)
    with pytest.raises(HyveError, match=r"not below HYVE_CLAIM_URL as DATE/NAME\.gz"):
        claims.text(root, Payload(name="p", url=f"{root}/{name}", size=1, digest="0"))


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_symbolic_link_is_not_followed(root: str, tmp_path: Path, what: str) -> None:
    """Whoever may write into the folder must not choose what else this process reads."""
    claimed = claims.put(root, Payload(name="p", text=TEXT))
    path = path_of(claimed)
    moved = tmp_path / "elsewhere"
    link = path if what == "file" else path.parent
    link.rename(moved)
    link.symlink_to(moved)
    with pytest.raises(HyveError, match="can't be read: a symbolic link is on the way"):
        claims.text(root, claimed)


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "claims").symlink_to(tmp_path / "volume")
    root = f"file://{tmp_path}/claims"
    assert claims.text(root, claims.put(root, Payload(name="p", text=TEXT))) == TEXT


@pytest.mark.parametrize(
    ("root", "says"),
    [
        ("ftp://x/y", "'ftp://x/y' is none of file://, s3://, gs://, abfs://"),
        ("/var/claims", "'/var/claims' is none of"),
        ("file://claims", "names no absolute path: write file:///folder"),
        ("s3://", "names no bucket: write s3://bucket/prefix"),
        ("file:///etc/passwd", "is no folder"),
    ],
)
def test_what_can_be_no_store_is_refused_at_start(root: str, says: str) -> None:
    with pytest.raises(HyveError, match=f"HYVE_CLAIM_URL: .*{says}"):
        claims.check(root)


def test_a_store_whose_package_is_missing_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(claims.fsspec, "get_filesystem_class", missing)
    with pytest.raises(HyveError, match=r"s3:// needs a package .* install hyve-diagnosis\[s3\]"):
        claims.check("s3://bucket/x")


def test_stores_that_can_be_are_taken(root: str) -> None:
    for good in ("", root, "file:///new/folder"):
        claims.check(good)


def test_a_worker_without_a_store_says_so(root: str) -> None:
    claimed = claims.put(root, Payload(name="p", text="x"))
    with pytest.raises(HyveError, match="this worker has no HYVE_CLAIM_URL"):
        claims.text("", claimed)


def path_of(claimed: Payload) -> Path:
    return Path(claimed.url.removeprefix("file://"))


def test_what_is_not_what_was_written_is_refused(root: str) -> None:
    claimed = claims.put(root, Payload(name="p", text=TEXT))
    for changed in (
        {"digest": hashlib.sha256(b"x").hexdigest()},
        {"size": claimed.size - 1},
        {"size": claimed.size + 1},
    ):
        with pytest.raises(HyveError, match="not what was written"):
            claims.text(root, claimed.model_copy(update=changed))
    with pytest.raises(HyveError, match="above the limit"):
        claims.text(root, claimed.model_copy(update={"size": claims.LARGEST + 1}))
    with pytest.raises(HyveError, match="its claim says that it has -1 bytes"):
        claims.text(root, claimed.model_copy(update={"size": -1}))
    path_of(claimed).write_bytes(b"no gzip")
    with pytest.raises(HyveError, match="can't be read"):
        claims.text(root, claimed)
    path_of(claimed).unlink()
    with pytest.raises(HyveError, match="can't be read: FileNotFoundError"):
        claims.text(root, claimed)


def away(root: str, claimed: Payload) -> bool:
    """Whether reading the claim fails in a way that may pass."""
    with pytest.raises(HyveError) as met:
        claims.text(root, claimed)
    assert "p: its data lies at" in str(met.value)
    return isinstance(met.value, claims.Unreachable)


def test_a_store_that_is_away_is_told_from_data_that_is_lost(root: str, tmp_path: Path) -> None:
    """Invariant 5: a share that isn't mounted for a minute is no reason to give a request up for good."""
    claimed = claims.put(root, Payload(name="p", text=TEXT))
    folder = tmp_path / "claims"
    folder.rename(tmp_path / "gone")
    assert away(root, claimed)
    folder.mkdir()  # what a share is mounted on
    assert away(root, claimed)
    (folder / "x").touch()
    assert not away(root, claimed), "there is a store, without the data"
    (folder / "x").unlink()
    folder.rmdir()
    (tmp_path / "gone").rename(folder)
    assert claims.text(root, claimed) == TEXT
    path_of(claimed).unlink()
    assert not away(root, claimed)
    path_of(claimed).mkdir()
    assert not away(root, claimed)


@pytest.mark.parametrize("error", [PermissionError(13, "denied"), OSError(5, "I/O error"), TimeoutError("slow")])
def test_a_store_that_fails_may_do_better_later(root: str, error: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = claims.put(root, Payload(name="p", text=TEXT))

    def fails(*_: Any) -> bytes:
        raise error

    monkeypatch.setattr(claims, "_unpacked", fails)
    assert away(root, claimed)


def hung(claimed: Payload) -> Callable[[], None]:
    """Makes reading a claim wait for ever, as a share does whose server is gone; what it gives ends that."""
    path = path_of(claimed)
    aside = path.with_suffix(".aside")
    path.rename(aside)
    os.mkfifo(path)

    def heal() -> None:
        fifo = path.with_suffix(".fifo")
        path.rename(fifo)
        aside.rename(path)
        os.close(os.open(fifo, os.O_WRONLY))  # those that wait may go: their read fails

    return heal


def read_when_there(root: str, claimed: Payload, seconds: float = 20.0) -> str:
    """The text, asked for again and again while the store says nothing."""
    end = time.monotonic() + seconds
    while True:
        try:
            return claims.text(root, claimed, 0.05)
        except claims.Unreachable:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_store_that_says_nothing_is_away_and_what_it_says_later_counts(root: str) -> None:
    """Invariant 5: no read waits for ever, and none is begun twice."""
    claimed, other = (claims.put(root, Payload(name=name, text=name + TEXT)) for name in ("p", "q"))
    heal = hung(claimed)
    with pytest.raises(claims.Unreachable, match=r"p: its data lies at .* nothing came of it for 0\.2 s"):
        claims.text(root, claimed, 0.2)
    before = time.monotonic()
    for _ in range(20):  # the store is known to be silent: nobody stands in line for it
        with pytest.raises(claims.Unreachable):
            claims.text(root, claimed, 60)
    assert read_when_there(root, other) == "q" + TEXT, "what does come is had"
    assert time.monotonic() - before < 30, "each of them would have waited for a minute"
    heal()
    assert read_when_there(root, claimed) == "p" + TEXT


def test_so_many_reads_may_hang_and_no_more_are_begun(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errands, "MOST", 3)
    claimed = [claims.put(root, Payload(name="p", text=f"{n}")) for n in range(5)]
    heals = [hung(one) for one in claimed]
    for one in claimed[:3]:
        with pytest.raises(claims.Unreachable, match="nothing came of it"):
            claims.text(root, one, 0.05)
    for one in claimed[3:]:
        with pytest.raises(claims.Unreachable, match="3 others wait for it in vain"):
            claims.text(root, one, 0.05)
    for heal in heals[:3]:
        heal()
    assert [read_when_there(root, one) for one in claimed[:3]] == ["0", "1", "2"]


def test_writing_to_a_store_that_says_nothing_ends_too(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "WRITE_SILENCE", 0.05)
    free = threading.Event()
    opened = fsspec.implementations.local.LocalFileSystem.makedirs

    def hangs(*given: Any, **named: Any) -> None:
        free.wait()
        opened(*given, **named)

    monkeypatch.setattr(fsspec.implementations.local.LocalFileSystem, "makedirs", hangs)
    with pytest.raises(claims.Unreachable, match="9 bytes of p can't be written: Silent: nothing came of it"):
        claims.put(root, Payload(name="p", text="some text"))
    free.set()


def test_a_worker_starts_beside_a_store_that_says_nothing(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "READ_SILENCE", 0.05)
    free = threading.Event()
    monkeypatch.setattr(os.path, "isdir", lambda _: free.wait())
    monkeypatch.setattr(os.path, "exists", lambda _: free.wait())
    claims.check(root)
    free.set()


def test_a_bomb_is_read_no_further_than_its_claim(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = claims.put(root, Payload(name="p", text="x" * 100))
    path_of(claimed).write_bytes(gzip.compress(b"x" * (200 << 20)))
    lengths = []
    unpacked = claims._unpacked

    def measured(file: Any, size: int, step: Any) -> bytes:
        data = unpacked(file, size, step)
        lengths.append(len(data))
        return data

    monkeypatch.setattr(claims, "_unpacked", measured)
    with pytest.raises(HyveError, match="not what was written"):
        claims.text(root, claimed)
    assert lengths == [101]


def test_a_store_that_can_not_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HyveError, match=r"1 bytes of p can't be written: \w+: .*; check HYVE_CLAIM_URL"):
        claims.put(f"file://{tmp_path}/file/below", Payload(name="p", text="x"))
    with pytest.raises(HyveError, match="HYVE_CLAIM_URL"):
        claims.put("nonsense://x", Payload(name="p", text="x"))


def test_old_claims_are_swept_and_nothing_else(root: str, tmp_path: Path) -> None:
    """The folder may be somebody's who keeps other things by days in it."""
    claimed = claims.put(root, Payload(name="p", text="x"))
    folder = tmp_path / "claims"
    now = datetime.now(UTC)
    old, young = (f"{now - timedelta(days=days):%Y-%m-%d}" for days in (3, 2))
    claim = f"{'0a' * 16}.gz"
    others = tmp_path / "elsewhere"
    others.mkdir()
    for path in (folder / old, folder / young, folder / "2020-01-01", folder / "2019-01-01", folder / "other", others):
        path.mkdir(exist_ok=True)
        (path / claim).write_text("x")
    kept = [folder / "2020-01-01" / name for name in ("backup.sql", f"{'0A' * 16}.gz", f"{'0' * 31}.gz")]
    for path in kept:
        path.write_text("x")
    (folder / "2020-01-01" / f"{'1' * 32}.gz").mkdir()
    (folder / "2018-01-01").symlink_to(others)
    (folder / "2017-01-01").write_text("a file")
    assert claims.sweep(root) == 3
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [f"{now:%Y-%m-%d}", young, "2020-01-01", "2018-01-01", "2017-01-01", "other"]
    )
    assert sorted((folder / "2020-01-01").iterdir()) == sorted([*kept, folder / "2020-01-01" / f"{'1' * 32}.gz"])
    assert (others / claim).exists()
    assert (folder / young / claim).exists()
    assert claims.text(root, claimed) == "x"
    assert claims.sweep("") == claims.sweep(f"file://{tmp_path}/none") == 0


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of a server that speaks S3, on loopback."""
    server = pytest.importorskip("moto.server", reason="needs moto[server] and s3fs").ThreadedMotoServer(
        "127.0.0.1", 0, verbose=False
    )
    s3fs = pytest.importorskip("s3fs", reason="needs moto[server] and s3fs")
    server.start()
    host, port = server.get_host_and_port()
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name, value in (("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", "test"), ("DEFAULT_REGION", "us-east-1")):
        patch.setenv(f"AWS_{name}", value)
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir("claims-bucket")
    yield "s3://claims-bucket/hyve"
    patch.undo()
    server.stop()


def test_s3_holds_claims_like_a_folder(bucket: str) -> None:
    made = claims.check_in(bucket, request(10, 9 << 20), 400)
    assert made.payloads[1].url.startswith(f"{bucket}/")
    assert claims.text(bucket, made.payloads[1]) == "x" * (9 << 20)
    fs, folder = fsspec.core.url_to_fs(bucket)
    fs.pipe(f"{folder}/2020-01-01/backup.sql", b"x")
    assert claims.sweep(bucket) == 0
    assert claims.sweep(bucket, datetime.now(UTC) + timedelta(days=4)) == 1
    with pytest.raises(HyveError, match="can't be read"):
        claims.text(bucket, made.payloads[1])
    assert fs.cat(f"{folder}/2020-01-01/backup.sql") == b"x"


def test_a_bucket_that_is_away_is_told_from_data_that_is_lost(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = claims.put(bucket, Payload(name="p", text=TEXT))
    gone = claimed.model_copy(update={"url": f"{bucket}/2026-01-02/{'0' * 32}.gz"})
    assert not away(bucket, gone)
    none = "s3://no-such-bucket/x"
    assert away(none, claimed.model_copy(update={"url": claimed.url.replace(bucket, none)}))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    assert away(bucket, claimed)
    monkeypatch.undo()
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    assert claims.text(bucket, claimed) == TEXT
