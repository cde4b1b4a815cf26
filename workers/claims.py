"""Claim checks: data too large for a Kafka record lies in a store of files, and the record says where and what it is.

Rules:
- One place is trusted, `HYVE_CLAIM_URL` (fsspec: file:///folder, s3://bucket/prefix). A claim that points elsewhere is
  refused: whoever may write a request must not choose what this process reads.
- What is read must be what was written: as long as the claim says, and of its SHA-256 digest. A symbolic link below a
  folder is followed nowhere.
- Data that is not there, or not what was written, is lost for good. A store that doesn't answer is not: `Unreachable`,
  also where it says neither yes nor no (see `workers.errands`).
- Data lies gzipped under the day it was written (UTC), so that a lifecycle rule of the bucket can take it after the
  requests' retention; `sweep` does the same for any store.

Functions block; call them from a thread.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from hyve.errors import HyveError
from schemas import DiagnosisRequest
from schemas.records import Payload
from workers import errands

LARGEST = 1 << 30
"""Bytes of the largest data that a claim may stand for."""

KEPT_DAYS = 2
"""Whole days after which `sweep` takes data away: requests live for one."""

SCHEMES = ("file", "s3", "gs", "abfs")
"""Stores that data may lie in: a folder, and buckets of objects."""


READ_SILENCE, WRITE_SILENCE = 15.0, 60.0
"""Seconds without a piece after which a store counts as away. A bucket takes many megabytes as one piece."""

_PIECE = 1 << 20


class Unreachable(HyveError):
    """The store of files doesn't answer, or lets nobody in: later it may."""


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAME = re.compile(rf"{_DAY.pattern}/[0-9a-f]{{32}}\.gz")
_LEVEL = 3


def check(root: str) -> None:
    """HyveError where `root` can be no store of files, so that a worker says so before data is put there."""
    if not root:
        return
    scheme, mark, place = root.partition("://")
    if not mark or scheme not in SCHEMES:
        raise HyveError(f"HYVE_CLAIM_URL: {root!r} is none of {', '.join(f'{name}://' for name in SCHEMES)}")
    if scheme == "file" and not place.startswith("/"):
        raise HyveError(f"HYVE_CLAIM_URL: {root!r} names no absolute path: write file:///folder")
    if scheme != "file" and not place.strip("/"):
        raise HyveError(f"HYVE_CLAIM_URL: {root!r} names no bucket: write {scheme}://bucket/prefix")
    with _told(root, f"HYVE_CLAIM_URL: {root!r} can't be used"):
        fsspec.get_filesystem_class(scheme)
    if scheme == "file" and _is_no_folder(place):
        raise HyveError(f"HYVE_CLAIM_URL: {root!r} is no folder")


def _is_no_folder(place: str) -> bool:
    """Whether something else is there. What says nothing is away, and may be back when it is needed."""
    try:
        return errands.run(f"look {place}", lambda _: os.path.exists(place) and not os.path.isdir(place), READ_SILENCE)
    except errands.Silent:
        return False


def check_in(root: str, request: DiagnosisRequest, limit: int) -> DiagnosisRequest:
    """`request` with its largest texts put under `root`, as many as it takes to keep at most `limit` bytes of text.

    Without a `root` the request comes back as it is. HyveError where the store can't be written.
    """
    sizes = [len(payload.text.encode("utf-8", "replace")) for payload in request.payloads]
    payloads = list(request.payloads)
    over = sum(sizes) - limit
    for i in sorted(range(len(payloads)), key=sizes.__getitem__, reverse=True):
        if over <= 0 or not root:
            break
        payloads[i] = put(root, payloads[i])
        over -= sizes[i]
    return request.model_copy(update={"payloads": tuple(payloads)})


def put(root: str, payload: Payload) -> Payload:
    """Writes the payload's text under `root`; the payload that claims it."""
    data = payload.text.encode("utf-8", "replace")
    name = f"{datetime.now(UTC):%Y-%m-%d}/{uuid.uuid4().hex}.gz"
    packed = memoryview(gzip.compress(data, _LEVEL))

    def write(step: errands.Step) -> None:
        fs, folder = fsspec.core.url_to_fs(root)
        path = f"{folder.rstrip('/')}/{name}"
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        with fs.open(path, "wb") as file:
            for start in range(0, len(packed), _PIECE):
                file.write(packed[start : start + _PIECE])
                step()

    with _told(root, f"{len(data)} bytes of {payload.name} can't be written"):
        errands.run(f"write {root} {name}", write, WRITE_SILENCE)
    digest = hashlib.sha256(data).hexdigest()
    update = {"text": "", "url": f"{root.rstrip('/')}/{name}", "size": len(data), "digest": digest}
    return payload.model_copy(update=update)


def text(root: str, payload: Payload, silence: float = READ_SILENCE) -> str:
    """The text of a payload, read from where its claim says.

    HyveError where it can't be had, or is not what was written; `Unreachable` where that is the store's fault, also
    where nothing comes for `silence` seconds. The reading goes on then: whoever asks again gets what came of it.
    """
    if not payload.url:
        return payload.text
    where = f"{payload.name}: its data lies at {payload.url[:200]}"
    if not root:
        raise HyveError(f"{where}, but this worker has no HYVE_CLAIM_URL")
    base = f"{root.rstrip('/')}/"
    name = payload.url.removeprefix(base)
    if not payload.url.startswith(base):
        raise HyveError(f"{where}, which is not below HYVE_CLAIM_URL ({root})")
    if not _NAME.fullmatch(name):
        raise HyveError(f"{where}, which is not below HYVE_CLAIM_URL as DATE/NAME.gz, the only names that are read")
    if payload.size < 0:
        raise HyveError(f"{where}: its claim says that it has {payload.size} bytes")
    if payload.size > LARGEST:
        raise HyveError(f"{where}: {payload.size} bytes are above the limit of {LARGEST}")
    with _told(root, f"{where} and can't be read"):
        # The claim's size and digest are part of the name: another claim may say other things of the same place.
        data = errands.run(
            f"read {payload.url} {payload.size} {payload.digest}",
            lambda step: _read(root, name, where, payload.size, step),
            silence,
        )
    if len(data) != payload.size or hashlib.sha256(data).hexdigest() != payload.digest:
        raise HyveError(f"{where}, but what is there is not what was written (its length or digest differs)")
    return data.decode("utf-8", "replace")


def _read(root: str, name: str, where: str, size: int, step: errands.Step) -> bytes:
    fs, folder = fsspec.core.url_to_fs(root)
    path = f"{folder.rstrip('/')}/{name}"
    if isinstance(fs, LocalFileSystem) and os.path.realpath(path) != os.path.join(os.path.realpath(folder), name):
        raise HyveError(f"{where} and can't be read: a symbolic link is on the way")
    try:
        with fs.open(path, "rb") as file:
            return _unpacked(file, size, step)
    except FileNotFoundError as error:
        if not _holds_anything(fs, folder):
            raise Unreachable(f"{where}, but HYVE_CLAIM_URL ({root}) is not there or empty: is it mounted?") from error
        raise


def _holds_anything(fs: Any, folder: str) -> bool:
    """Whether anything lies in a store. Where a share was mounted, an empty folder is left."""
    try:
        return bool(fs.ls(folder, detail=False, refresh=True))
    except FileNotFoundError:
        return False


def _unpacked(file: Any, size: int, step: errands.Step) -> bytes:
    """What a gzip file holds, at most one byte more than `size`."""
    reader = zlib.decompressobj(wbits=31)
    made = bytearray()
    while len(made) <= size and not reader.eof and (piece := file.read(_PIECE)):
        step()
        made += reader.decompress(piece, size + 1 - len(made))
    return bytes(made)


def sweep(root: str, now: datetime | None = None) -> int:
    """Takes away what was written more than KEPT_DAYS whole days ago, and returns how many claims went.

    Only what has the name of a claim: whatever else lies below `root` is its owner's.
    """
    if not root:
        return 0
    oldest = f"{(now or datetime.now(UTC)) - timedelta(days=KEPT_DAYS):%Y-%m-%d}"
    with _told(root, "old data can't be taken away"):
        return errands.run(f"sweep {root} {oldest}", lambda step: _sweep(root, oldest, step), WRITE_SILENCE)


_AT_ONCE = 500
"""Claims that are taken away together."""


def _sweep(root: str, oldest: str, step: errands.Step) -> int:
    gone = 0
    fs, folder = fsspec.core.url_to_fs(root)
    if not fs.exists(folder):
        return 0
    for day in fs.ls(folder, detail=True, refresh=True):
        place, name = str(day["name"]).rstrip("/"), _last(day)
        if not _DAY.fullmatch(name) or name >= oldest or day["type"] != "directory" or day.get("islink"):
            continue
        there = fs.ls(place, detail=True, refresh=True)
        old = [it["name"] for it in there if it["type"] == "file" and _NAME.fullmatch(f"{name}/{_last(it)}")]
        for start in range(0, len(old), _AT_ONCE):
            step()
            fs.rm(old[start : start + _AT_ONCE])
        gone += len(old)
        if len(old) == len(there) and isinstance(fs, LocalFileSystem):  # a bucket has no folders
            fs.rmdir(place)
    return gone


def _last(entry: dict[str, Any]) -> str:
    return str(entry["name"]).rstrip("/").rpartition("/")[2]


_FINAL = (FileNotFoundError, IsADirectoryError, NotADirectoryError, zlib.error)
"""What says something of the data, or of its name. All else is the store's: libraries for buckets raise
errors of many kinds."""


@contextmanager
def _told(root: str, what: str) -> Iterator[None]:
    """Turns what a store of files raises into one line."""
    try:
        yield
    except HyveError:
        raise
    except MemoryError:
        raise  # ours, not the store's
    except ImportError as error:
        scheme = root.partition("://")[0]
        raise HyveError(f"{what}: {scheme}:// needs a package ({error}); for S3 install hyve-diagnosis[s3]") from None
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        kind = HyveError if isinstance(error, _FINAL) else Unreachable
        raise kind(f"{what}: {type(error).__name__}: {said}; check HYVE_CLAIM_URL") from None
