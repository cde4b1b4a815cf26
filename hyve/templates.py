"""What a log line says beside its ids and numbers."""

from __future__ import annotations

MASK = r"\w*\d\w*(?:[-.:/]\w*\d\w*)*"
"""What makes two log lines differ though they say the same: ids, addresses, numbers."""


def template_of(column: str) -> str:
    """SQL of what a text says: ids, numbers and colours are `#`."""
    return f"regexp_replace({column}, '\\x1b\\[[0-9;]*m|{MASK}', '#', 'g')"
