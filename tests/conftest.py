"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# A change lands or not by what it does, so CI draws the same examples each time; a developer's run draws new ones.
settings.register_profile("ci", derandomize=True, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
