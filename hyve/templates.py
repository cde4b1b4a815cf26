"""What a log line says beside its ids and numbers."""

from __future__ import annotations

MASK = r"\w*\d\w*(?:[-.:/]\w*\d\w*)*"
"""What makes two log lines differ though they say the same: ids, addresses, numbers."""


HIDDEN = rf"\x1b\[[0-9;]*m|{MASK}"
"""What a text is without: ids, numbers and colours are `#`. DuckDB and Arrow read it alike, by RE2."""


def template_of(column: str) -> str:
    """SQL of what a text says."""
    return f"regexp_replace({column}, '{HIDDEN}', '#', 'g')"
