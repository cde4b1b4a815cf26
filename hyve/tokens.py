"""Exact token counts by the o200k vocabulary, which `quicktok` ships (nothing is fetched at run time)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import quicktok


@lru_cache(maxsize=1)
def _encoding() -> Any:
    return quicktok.get_encoding("o200k_base")


def count_tokens(text: str) -> int:
    """Number of o200k tokens of `text`. Special-token look-alikes count as the ordinary text they are."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return int(_encoding().count(text))
