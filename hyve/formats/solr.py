"""Solr's answer of `/admin/mbeans` as rows of `solr_mbeans`.

Rules: Solr writes a named list as a flat array [name, value, name, value, ...], or as an object with `json.nl=map`. A
statistic that is "NaN" (an average over no request) has no value.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.recogniser import needs
from hyve.formats.rows import known
from hyve.formats.scalars import Relations, mapping


@needs("solr-mbeans")
def recognise(value: Any) -> Relations | None:
    """Rows of `solr_mbeans`, or None."""
    if type(value) is not dict:
        return None
    rows = [
        {
            "category": category,
            "name": name,
            "class": known(bean.get("class")),
            "version": known(bean.get("version")),
            "description": known(bean.get("description")),
            "stats": {key: None if inner == "NaN" else inner for key, inner in _named(bean.get("stats")).items()},
        }
        for category, group in _named(value.get("solr-mbeans")).items()
        for name, bean in _named(group).items()
        if type(bean) is dict
    ]
    return {"solr_mbeans": rows} if rows else None


def _named(value: Any) -> dict[str, Any]:
    """A named list in either way to write it."""
    if type(value) is not list:
        return mapping(value)
    return {name: inner for name, inner in zip(value[::2], value[1::2], strict=False) if type(name) is str}
