"""The body of a raw record: unpacked, and read as JSON values.

Rules:
- `Poison` says why a body can't be read. What a body unfolds to is bounded, whatever its head promises, and so are the
  JSON values that are held at a time: some are three bytes long.
- A body of nothing but compressed bytes is known by its first ones, Snappy's raw blocks and bare deflate only by the
  header `content-encoding`.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import cramjam
import zstandard

from hyve import strictjson
from hyve.strictjson import Ahead, Lines
from streams.app import Poison

LARGEST = 64 << 20
"""Bytes that a body may unfold to."""

MOST_VALUES, MOST_IN_RUNS = 500_000, 4_000_000
"""JSON values, as `parts` counts them, of a body that is read at once and of one that is read in runs."""

_GZIP = b"\x1f\x8b\x08"
_ZLIB = (b"\x78\x9c", b"\x78\xda")  # no UTF-8; of other levels they could be text
_ZSTD = b"\x28\xb5\x2f\xfd"
_SNAPPY = b"\xff\x06\x00\x00sNaPpY"
_XERIAL = b"\x82SNAPPY\x00"  # the framing of Java's library; 16 bytes of head, then blocks with their size before them


class Larger(Poison):
    """The body unfolds to more than it may."""


def unpack(data: bytes, encoding: str = "", largest: int = LARGEST) -> bytes:
    """What `data` unfolds to; as it is where it isn't compressed. `Larger` where that has over `largest` bytes."""
    try:
        if data.startswith(_GZIP):
            unfolded = _inflated(data, 31, largest)
        elif data.startswith(_ZSTD):
            unfolded = _zstd(data, largest)
        elif data.startswith(_SNAPPY):
            unfolded = _stream(data, largest)
        elif data.startswith(_XERIAL):
            unfolded = _xerial(data, largest)
        elif encoding == "snappy":
            unfolded = _block(data, largest)
        elif encoding == "deflate" or data.startswith(_ZLIB):
            unfolded = _deflate(data, largest)
        else:
            return data
    except (zlib.error, zstandard.ZstdError, cramjam.DecompressionError, ValueError) as error:
        raise Poison(f"the compressed body is damaged: {str(error)[:200]}") from None
    if len(unfolded) > largest:
        raise _larger(largest)
    return unfolded


def _larger(largest: int) -> Larger:
    return Larger(f"the compressed body unfolds to more than {largest} bytes")


def _inflated(data: bytes, form: int, largest: int) -> bytes:
    """All members of the form (zlib's `wbits`), to the first byte too many."""
    parts: list[bytes] = []
    left = largest + 1
    while data and left > 0:
        stream = zlib.decompressobj(wbits=form)
        parts.append(stream.decompress(data, left))
        left -= len(parts[-1])
        if left > 0 and not stream.eof:
            raise ValueError("it is cut")
        data = stream.unused_data
    return b"".join(parts)


def _deflate(data: bytes, largest: int) -> bytes:
    """In zlib's envelope, as HTTP has it, or bare, as many write it."""
    try:
        return _inflated(data, 15, largest)
    except zlib.error:
        return _inflated(data, -15, largest)


def _zstd(data: bytes, largest: int) -> bytes:
    """All frames, to the first byte too many. The reader doesn't say that a frame is cut; the frame's own size does."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=LARGEST)
    with unpacker.stream_reader(data, read_across_frames=True) as stream:
        unfolded = stream.read(largest + 1)
    if len(unfolded) < min(zstandard.frame_content_size(data), largest):
        raise ValueError("it is cut")
    return unfolded


def _stream(data: bytes, largest: int) -> bytes:
    """Snappy's own framing: a block is 64 KiB at most, and its bytes shrink to a twentieth at best."""
    if len(data) * 24 > largest:
        raise Larger(f"the compressed body of {len(data)} bytes may unfold to more than {largest}")
    return bytes(cramjam.snappy.decompress(data))


def _block(data: bytes, largest: int) -> bytes:
    """One raw block; its head is its full size."""
    if cramjam.snappy.decompress_raw_len(data) > largest:
        raise _larger(largest)
    return bytes(cramjam.snappy.decompress_raw(data))


def _xerial(data: bytes, largest: int) -> bytes:
    parts: list[bytes] = []
    place, total = 16, 0
    while place < len(data):
        size = int.from_bytes(data[place : place + 4], "big")
        parts.append(_block(data[place + 4 : place + 4 + size], largest))
        place += 4 + size
        total += len(parts[-1])
        if total > largest:
            break
    return b"".join(parts)


def decoded(data: bytes) -> str:
    """The text of `data`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Poison(f"not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}") from None
    if not text.strip():
        raise Poison("the record is empty")
    return text


def parts(text: str) -> int:
    """What bounds the number of JSON values in a text, and is no less than half of it."""
    return text.count(",") + text.count("{") + text.count("[")


def values(data: bytes) -> list[Any]:
    """The JSON value of `data`, or the values of its lines, or of documents one behind the other."""
    text = decoded(data)
    if (count := parts(text)) > MOST_VALUES:
        raise Poison(f"its JSON may hold {count} values, which can't be read in parts: {MOST_VALUES} are the most")
    whole = strictjson.read(text)
    if whole is not None:
        return [whole[0]]
    lines = strictjson.read_lines(text)
    if lines is not None:
        return [value for value, *_ in lines]
    return _documents(text)


def in_runs(data: bytes) -> Ahead | Lines | None:
    """A long list in the one JSON document that `data` is, or its lines, if each is an object, to be read in runs. It
    is strict JSON to its end then. None where `values` has to read all at once.
    """
    text = decoded(data)
    if (count := parts(text)) > MOST_IN_RUNS:
        raise Poison(f"its JSON may hold {count} values: {MOST_IN_RUNS} are the most")
    ahead = strictjson.read_ahead(text.strip(), keep=False)
    if ahead is not None and parts(ahead.rest) <= MOST_VALUES:
        rest = strictjson.read(ahead.rest)
        if rest is not None and ahead.list_in(rest[0]) is not None:
            return ahead
    return strictjson.long_lines(text)


def _documents(text: str) -> list[Any]:
    """The values of documents with nothing but blanks between them."""
    found: list[Any] = []
    decoder = json.JSONDecoder()
    place, end = 0, len(text)
    try:
        while True:
            while place < end and text[place] in " \t\r\n":
                place += 1
            if place == end:
                break
            _, after = decoder.raw_decode(text, place)
            value = strictjson.read(text[place:after])
            if value is None:
                raise Poison(f"the JSON at offset {place} is nested deeper than {strictjson.MAX_DEPTH} levels")
            found.append(value[0])
            place = after
    except json.JSONDecodeError as error:
        raise Poison(f"not JSON: {error.msg} at offset {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise Poison(f"JSON that can't be read: {str(error)[:200]}") from None
    return found
