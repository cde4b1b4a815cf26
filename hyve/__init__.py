"""HYVE: context engineering over machine data.

Text in, compact prompt and queryable store out; model reply in, answer out.

    import hyve

    document = hyve.parse(text)                       # where the structured parts are, and their values
    with hyve.Datastore.from_document(document) as store:
        store.query("SELECT count(*) FROM records")   # all of the data, by SQL
    prompt = hyve.view(text, question="which pod restarts?", budget=4000)

No network, no Kafka, no reading of the environment.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyve.catalog import Catalog, Column, Table
    from hyve.diagnosis import Claim, Diagnosis, Evidence, RootCause, Tokens
    from hyve.document import Document, Part, parse
    from hyve.errors import (
        BackfillError,
        BudgetError,
        HyveError,
        InputError,
        ModelError,
        ReplyError,
        SqlError,
        SqlLimit,
        SqlRefused,
    )
    from hyve.profile import ColumnView
    from hyve.prompt import DEFAULT_BUDGET, Budget, Prompt, Savings
    from hyve.reply import Decision, Direct, Model, ModelReply, Query, Template, ToolCall
    from hyve.rowview import RowView
    from hyve.sql import QueryResult
    from hyve.stages import Payload, Request, diagnose, prepare, view
    from hyve.store import Datastore
    from hyve.strictjson import Pairs
    from hyve.tokens import count_tokens

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_BUDGET",
    "BackfillError",
    "Budget",
    "BudgetError",
    "Catalog",
    "Claim",
    "Column",
    "ColumnView",
    "Datastore",
    "Decision",
    "Diagnosis",
    "Direct",
    "Document",
    "Evidence",
    "HyveError",
    "InputError",
    "Model",
    "ModelError",
    "ModelReply",
    "Pairs",
    "Part",
    "Payload",
    "Prompt",
    "Query",
    "QueryResult",
    "ReplyError",
    "Request",
    "RootCause",
    "RowView",
    "Savings",
    "SqlError",
    "SqlLimit",
    "SqlRefused",
    "Table",
    "Template",
    "Tokens",
    "ToolCall",
    "count_tokens",
    "diagnose",
    "parse",
    "prepare",
    "view",
]

# Imported when first used: a command that only reads its arguments has no need of DuckDB and Arrow.
_EXPORTS = {
    "hyve.diagnosis": "Claim Diagnosis Evidence RootCause Tokens",
    "hyve.document": "Document Part parse",
    "hyve.errors": "BackfillError BudgetError HyveError InputError ModelError ReplyError SqlError SqlLimit SqlRefused",
    "hyve.profile": "ColumnView",
    "hyve.prompt": "DEFAULT_BUDGET Budget Prompt Savings",
    "hyve.reply": "Decision Direct Model ModelReply Query Template ToolCall",
    "hyve.sql": "QueryResult",
    "hyve.stages": "Payload Request diagnose prepare view",
    "hyve.catalog": "Catalog Column Table",
    "hyve.store": "Datastore",
    "hyve.strictjson": "Pairs",
    "hyve.tokens": "count_tokens",
    "hyve.rowview": "RowView",
}
_WHERE = {name: module for module, names in _EXPORTS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
