"""The `hyve` command as a user runs it: without the settings of whoever runs the tests."""

from __future__ import annotations

import os
import sys

HYVE = (sys.executable, "-m", "streams.cli")


def environment(**more: str) -> dict[str, str]:
    """The environment of this process without settings of HYVE but those in `more`."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("HYVE_")}, **more}
