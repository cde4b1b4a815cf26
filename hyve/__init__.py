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
from hyve.sql import QueryResult
from hyve.stages import Payload, Request, diagnose, prepare
from hyve.store import Catalog, Column, Datastore, Table
from hyve.strictjson import Pairs
from hyve.tokens import count_tokens
from hyve.views import RowView

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


def view(text: str | bytes, question: str = "", budget: int = DEFAULT_BUDGET) -> Prompt:
    """The compact prompt for `question` over the data in `text`, in at most `budget` o200k tokens.

    Raises InputError (nothing to look at) or BudgetError (it names the smallest budget that works).
    """
    store, prompt = prepare(Request(question, (Payload("input", text),), budget))
    store.close()
    return prompt
