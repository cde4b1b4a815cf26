"""Names of time zones behind times: those that are of one offset, and those of which nobody knows which is meant."""

from __future__ import annotations

import re

OFFSETS = {
    "WET": "+00:00",
    **dict.fromkeys(("CET", "WEST"), "+01:00"),
    **dict.fromkeys(("CEST", "EET", "SAST"), "+02:00"),
    **dict.fromkeys(("EEST", "MSK"), "+03:00"),
    **dict.fromkeys(("HKT", "SGT"), "+08:00"),
    **dict.fromkeys(("JST", "KST"), "+09:00"),
    "AEST": "+10:00",
    "AEDT": "+11:00",
    "NZST": "+12:00",
    "NZDT": "+13:00",
    "EDT": "-04:00",
    "EST": "-05:00",
    "MDT": "-06:00",
    **dict.fromkeys(("MST", "PDT"), "-07:00"),
    **dict.fromkeys(("PST", "AKDT"), "-08:00"),
    "AKST": "-09:00",
    "HST": "-10:00",
}
"""How far the zones are ahead of UTC."""
_SEVERAL = ("ADT", "AMT", "AST", "BST", "CDT", "CST", "ECT", "GST", "IST", "SST", "WST")
"""Names of several zones: CST is of Chicago, of Beijing and of Havana."""
KNOWN = "|".join(OFFSETS)
"""A pattern of the names that are of one offset."""
NAMES = "|".join((*OFFSETS, *_SEVERAL))
"""A pattern of all names."""
_UNKNOWN = re.compile(r"\d{4}[-/.]\d\d[-/.]\d\d[T ]\d\d:\d\d[\d:.,]* ?[A-Z]{3,4}", re.ASCII)


def unknown(value: object) -> bool:
    """Whether a text that was read as no instant is a time with a zone's name behind it."""
    return type(value) is str and len(value) < 60 and bool(_UNKNOWN.fullmatch(value))
