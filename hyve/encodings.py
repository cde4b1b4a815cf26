"""Bytes or text -> text: UTF-8, UTF-16 with and without a mark, and what is neither (H5).

Rules: bytes that are no text are refused; single bytes that don't fit are kept as surrogates and flagged. A byte order
mark at the start of a line, too, is no text: files written one after the other have one each.
"""

from __future__ import annotations

import re

from hyve.errors import InputError


def decode(source: str | bytes, name: str) -> tuple[str, list[str]]:
    """The text of `source` without its byte order marks, and flags. Raises InputError, which names the input."""
    flags: list[str] = []
    if isinstance(source, bytes):
        text, flags = _decode_bytes(source, f" {name!r}" if name else "")
    else:
        text = source
        try:
            text.encode()
        except UnicodeEncodeError:
            flags = ["lone_surrogate"]
    if "\ufeff" in text:
        text, marks = _MARK.subn("", text)
        flags += ["bom"] * (marks > 0)
    if "\x00" in text:
        flags.append("nul_bytes")
    return text, flags


_MARK = re.compile(r"(?:\A|(?<=[\n\r]))\ufeff")
_CONTROL = bytes(set(range(1, 32)) - set(b"\t\n\f\r\x1b"))


def _decode_bytes(source: bytes, where: str) -> tuple[str, list[str]]:
    encoding = _utf16(source)
    if encoding:
        try:
            text = source.decode(encoding, "surrogatepass")
        except UnicodeDecodeError as error:
            raise InputError(
                f"the input{where} looks like UTF-16 but byte {error.start} doesn't fit: {error.reason}"
            ) from None
        return text, ["utf16", "lone_surrogate"] if re.search("[\ud800-\udfff]", text) else ["utf16"]
    head = source[:65536]
    control = len(head) - len(head.translate(None, _CONTROL))
    nul = head.strip(b"\x00").count(0)  # a file that was cut while it was written starts with a run of them
    if control > max(8, len(head) // 50) or nul > max(8, len(head) // 4) or (source and not source.strip(b"\x00")):
        raise InputError(
            f"the input{where} is binary ({control + nul} control bytes in its first {len(head)}): "
            "give text such as JSON, CSV or logs; decompress it first if it is compressed"
        )
    try:
        return source.decode("utf-8"), []
    except UnicodeDecodeError as error:
        text = source.decode("utf-8", "surrogateescape")
        if sum("\udc80" <= char <= "\udcff" for char in text) > max(8, len(text) // 20):
            raise InputError(
                f"the input{where} is not UTF-8 text (first bad byte at {error.start}): convert it to UTF-8"
            ) from None
        return text, ["invalid_utf8"]


def _utf16(source: bytes) -> str:
    """The name of the UTF-16 encoding that the bytes are in, or "". Without a mark, ASCII's zero bytes tell."""
    if source[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    head = source[:4096]
    pairs = len(head) // 2
    if pairs > 1 and len(source) % 2 == 0:
        first, second = head[::2].count(0), head[1::2].count(0)
        if second * 10 >= pairs * 7 and first * 20 <= pairs:
            return "utf-16-le"
        if first * 10 >= pairs * 7 and second * 20 <= pairs:
            return "utf-16-be"
    return ""


def encodable(text: str) -> str:
    """`text` with the replacement character in place of lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
