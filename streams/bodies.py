"""The body of a raw record: unpacked, and read as JSON values.

Rules: `Poison` says why a body can't be read. What a body unfolds to is bounded, whatever its head promises; a body of
nothing but compressed bytes is known by its first ones, Snappy's raw blocks only by the header `content-encoding`.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import cramjam
import zstandard

from hyve import strictjson
from streams.app import Poison

LARGEST = 64 << 20
"""Bytes that a body may unfold to."""

_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SNAPPY = b"\xff\x06\x00\x00sNaPpY"
_XERIAL = b"\x82SNAPPY\x00"  # the framing of Java's library; 16 bytes of head, then blocks with their size before them


def unpack(data: bytes, encoding: str = "") -> bytes:
    """What `data` unfolds to; as it is where it is not compressed."""
    try:
        if data.startswith(_GZIP):
            unfolded = _gzip(data)
        elif data.startswith(_ZSTD):
            unfolded = _zstd(data)
        elif data.startswith(_SNAPPY):
            unfolded = _stream(data)
        elif data.startswith(_XERIAL):
            unfolded = _xerial(data)
        elif encoding == "snappy":
            unfolded = _block(data)
        else:
            return data
    except (zlib.error, zstandard.ZstdError, cramjam.DecompressionError, ValueError, IndexError) as error:
        raise Poison(f"the compressed body is damaged: {str(error)[:200]}") from None
    if len(unfolded) > LARGEST:
        raise Poison(f"the compressed body unfolds to more than {LARGEST} bytes")
    return unfolded


def _gzip(data: bytes) -> bytes:
    """All members, to the first byte too many."""
    parts: list[bytes] = []
    left = LARGEST + 1
    while data and left > 0:
        stream = zlib.decompressobj(wbits=31)
        parts.append(stream.decompress(data, left))
        left -= len(parts[-1])
        if left > 0 and not stream.eof:
            raise ValueError("it is cut")
        data = stream.unused_data
    return b"".join(parts)


def _zstd(data: bytes) -> bytes:
    """All frames, to the first byte too many. The reader doesn't say that a frame is cut; the frame's own size does."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=LARGEST)
    with unpacker.stream_reader(data, read_across_frames=True) as stream:
        unfolded = stream.read(LARGEST + 1)
    if len(unfolded) < min(zstandard.frame_content_size(data), LARGEST):
        raise ValueError("it is cut")
    return unfolded


def _stream(data: bytes) -> bytes:
    """Snappy's own framing: a block is 64 KiB at most, and its bytes shrink to a twentieth at best."""
    if len(data) * 24 > LARGEST:
        raise Poison(f"the compressed body of {len(data)} bytes may unfold to more than {LARGEST}")
    return bytes(cramjam.snappy.decompress(data))


def _block(data: bytes) -> bytes:
    """One raw block; its head is its full size."""
    size = shift = place = 0
    while True:
        size |= (data[place] & 0x7F) << shift
        if data[place] < 0x80:
            break
        place, shift = place + 1, shift + 7
        if shift > 28:
            raise ValueError("its size is no number")
    if size > LARGEST:
        raise Poison(f"the compressed body unfolds to more than {LARGEST} bytes")
    return bytes(cramjam.snappy.decompress_raw(data))


def _xerial(data: bytes) -> bytes:
    parts: list[bytes] = []
    place, total = 16, 0
    while place < len(data):
        size = int.from_bytes(data[place : place + 4], "big")
        parts.append(_block(data[place + 4 : place + 4 + size]))
        place += 4 + size
        total += len(parts[-1])
        if total > LARGEST:
            break
    return b"".join(parts)


def values(data: bytes) -> list[Any]:
    """The JSON value of `data`, or the values of its lines, or of documents one behind the other."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Poison(f"not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}") from None
    if not text.strip():
        raise Poison("the record is empty")
    whole = strictjson.read(text)
    if whole is not None:
        return [whole[0]]
    lines = strictjson.read_lines(text)
    if lines is not None:
        return [value for value, *_ in lines]
    return _documents(text)


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
