"""Bytes or text -> text: UTF-8, UTF-16 and UTF-32 with and without a mark, and what is none of them (H5).

Rules: bytes that are no text are refused; single bytes that don't fit are kept as surrogates and flagged, those behind
the last whole character of a text that was cut among them. A byte order mark at the start of a line, too, is no text:
files written one after the other have one each.
"""

from __future__ import annotations

import re
from unicodedata import category

from hyve.errors import InputError


def decode(source: str | bytes | bytearray | memoryview, name: str) -> tuple[str, list[str]]:
    """The text of `source` without its byte order marks, and flags. Raises InputError, which names the input."""
    flags: list[str] = []
    if not isinstance(name, str):
        raise InputError(f"an input's name is a text, not {article(name)}")
    where = f" {name!r}" if name else ""
    if not isinstance(source, str):
        if not isinstance(source, bytes | bytearray | memoryview):
            raise InputError(
                f"the input{where} is {article(source)}: give text or bytes (a value's JSON, what a file holds)"
            )
        text, flags = _decode_bytes(bytes(source), where)
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


def article(value: object) -> str:
    """The kind of a value, for messages: `an int`."""
    kind = type(value).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


_MARK = re.compile(r"(?:\A|(?<=[\n\r]))\ufeff")
_CONTROL = bytes(set(range(1, 32)) - set(b"\t\n\f\r\x1b"))


def _decode_bytes(source: bytes, where: str) -> tuple[str, list[str]]:
    if width := _wide(source):
        size, encoding = width
        whole = len(source) - len(source) % size
        try:
            text = source[:whole].decode(encoding, "surrogatepass")
        except UnicodeDecodeError as error:
            raise InputError(
                f"the input{where} looks like UTF-{8 * size} but byte {error.start} doesn't fit: {error.reason}"
            ) from None
        text += "".join(chr(0xDC00 + byte) for byte in source[whole:])
        flags = [f"utf{8 * size}"]
        return text, [*flags, "lone_surrogate"] if re.search("[\ud800-\udfff]", text) else flags
    head = source[:65536]
    control = len(head) - len(head.translate(None, _CONTROL))
    nul = head.strip(b"\x00").count(0)  # a file that was cut while it was written starts with a run of them
    if control > max(8, len(head) // 50) or nul > max(8, len(head) // 4) or (source and not source.strip(b"\x00")):
        raise InputError(
            f"the input{where} is binary ({control + head.count(0)} control bytes in its first {len(head)}): "
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


_MARKS = {
    b"\xff\xfe\0\0": (4, "utf-32"),
    b"\0\0\xfe\xff": (4, "utf-32"),
    b"\xff\xfe": (2, "utf-16"),
    b"\xfe\xff": (2, "utf-16"),
}
_HEAD = 4096
"""Bytes by which an encoding without a mark is told."""


def _wide(source: bytes) -> tuple[int, str] | None:
    """The bytes of a character and the name of the encoding, UTF-16 or UTF-32, that the bytes are in, or None."""
    for mark, wide in _MARKS.items():
        if source.startswith(mark):
            return wide
    head = source[:_HEAD]
    if 0 not in head or len(head) < 4:
        return None
    zeros = [head[i::4].count(0) / len(head[i::4]) for i in range(4)]
    for order, name in ((zeros, "utf-32-le"), (zeros[::-1], "utf-32-be")):
        if len(head) >= 8 and order[0] < 0.5 < order[2] and order[3] > 0.95 and _is_text(head, 4, name):
            return 4, name
    first, second = (zeros[0] + zeros[2]) / 2, (zeros[1] + zeros[3]) / 2
    for own, other, name in ((second, first, "utf-16-le"), (first, second, "utf-16-be")):
        if own >= 0.7 and other <= 0.05:  # mostly ASCII
            return 2, name
    return _utf16(head)


_ALTERNATING = re.compile(rb"\0[^\0](?=\0[^\0])|[^\0]\0(?=[^\0]\0)")
_MARKUP = re.compile(r'[\n"=,:;|]')
_STRANGE = frozenset({"Cc", "Cn", "Co", "Cs"})


def _utf16(head: bytes) -> tuple[int, str] | None:
    """The same of a text that is not mostly ASCII: one of its two readings has a sign of data or a line's end, and
    hardly a character that no text has. UTF-8 may have zero bytes, too, but none with one other byte between."""
    control = len(head) - len(head.translate(None, _CONTROL))
    if control <= len(head) // 50 and len(_ALTERNATING.findall(head)) * 4 < head.count(0):
        try:
            head[:-3].decode()
        except UnicodeDecodeError:
            pass
        else:
            return None
    texts = {name: head[: len(head) & ~1].decode(name, "replace") for name in ("utf-16-le", "utf-16-be")}
    found = [name for name, text in texts.items() if _MARKUP.search(text) and _is_text(head, 2, name)]
    return (2, found[0]) if len(found) == 1 else None


def _is_text(head: bytes, size: int, encoding: str) -> bool:
    """Whether hardly any character of an encoding is one that no text has."""
    text = head[: len(head) - len(head) % size].decode(encoding, "replace")
    plain = text.translate(dict.fromkeys(map(ord, "\t\n\r\f\x1b")))
    return sum(char == "\ufffd" or category(char) in _STRANGE for char in plain) * 50 <= len(text)


def encodable(text: str) -> str:
    """`text` with the replacement character in place of lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
