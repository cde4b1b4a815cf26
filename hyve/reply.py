"""A model's reply -> what it decided: Direct | Query | Template (H25-H30).

Rules:
- Native tool calls come first. Without a usable one, a JSON call in the text counts, fenced or bare; without
  that, the text itself is the answer (`Direct`). ReplyError where none of them is left.
- Several calls at once: the first usable one is taken. A call that can't be used (unknown tool, arguments
  that don't fit) is passed over. Text beside a call goes along with it.
- A query may be bare SQL: as arguments, as `query_datastore(sql="...")`, or as a text that is nothing but one fenced
  statement.
- Arguments may be a JSON object, a string of JSON, or a string of a string of JSON; what is not quite JSON is
  repaired. Of a text, and of arguments, the first megabyte is read. Lone surrogates become U+FFFD.
- QueryDatastore, GenTemplateAndBackfill and BackfillData (H27) are accepted too, in any spelling of case and
  underscores; BackfillData calls beside a template without fills are its fills.

Everything here is a pure function of the reply; nothing is run. `conclusion` reads what a `Direct` text says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from hyve import operators
from hyve.conclusion import Conclusion, conclusion
from hyve.encodings import encodable
from hyve.errors import ReplyError
from hyve.jsontext import MAX_TEXT, as_object, documents, first, fold, parse, without_thoughts
from hyve.tokens import count_tokens

__all__ = [
    "TOOLS",
    "Conclusion",
    "Decision",
    "Direct",
    "Fill",
    "FillMapping",
    "Model",
    "ModelReply",
    "Query",
    "Template",
    "ToolCall",
    "conclusion",
    "decide",
]

_MAX_CALLS = 32
_MAX_FILLS = 64
_MAX_MAPPINGS = 256


@dataclass(frozen=True)
class ToolCall:
    """One native call; `arguments` is JSON text as the model sent it.

    OpenAI's APIs give that text, Anthropic's an object (`input` of a `tool_use` block), which becomes its text here.
    """

    id: str
    name: str
    arguments: str

    def __post_init__(self) -> None:
        text = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, default=str)
        object.__setattr__(self, "arguments", encodable(text))


@dataclass(frozen=True)
class ModelReply:
    """What a model sent back. Token counts are None where the service reported none, `cost` where no price is known;
    `cut`: the model's token limit ended it."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    model: str = ""
    cost: float | None = None
    cut: bool = False

    @property
    def written(self) -> int:
        """Tokens that the model wrote: as reported, else those of the text and of the calls."""
        if self.completion_tokens is not None:
            return self.completion_tokens
        return count_tokens(self.text) + sum(count_tokens(f"{call.name} {call.arguments}") for call in self.tool_calls)


class Model(Protocol):
    """A chat model. `messages` and `tools` have the form of OpenAI's chat completions. Fails by ModelError."""

    name: str

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> ModelReply: ...


@dataclass(frozen=True)
class FillMapping:
    """Each row's value of `column` goes to `path` (grammar: `hyve.backfill`)."""

    column: str
    path: str


@dataclass(frozen=True)
class Fill:
    """One statement and where the columns of its rows go."""

    sql: str
    mappings: tuple[FillMapping, ...]


@dataclass(frozen=True)
class Direct:
    """Mode 1: the answer is the text."""

    text: str


@dataclass(frozen=True)
class Query:
    """Mode 3: rows are wanted before the answer. `call` is None where the call stood in the text; `text` is what stood
    beside it."""

    sql: str
    call: ToolCall | None
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Template:
    """Mode 2: a skeleton that the rows of `fills` complete. `text` is what stood beside the call."""

    template: Any
    fills: tuple[Fill, ...]
    call: ToolCall | None
    text: str = ""


Decision = Direct | Query | Template


def _tool(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


_SQL = {"type": "string"}
_MAPPING = {"type": "object", "properties": {"column": {"type": "string"}, "path": {"type": "string"}}}
_FILL = {"type": "object", "properties": {"sql": _SQL, "mappings": {"type": "array", "items": _MAPPING}}}

# Every request pays for these words: they say what is needed to make a call right, and nothing else.
TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        "query_datastore",
        "Run one DuckDB SELECT over all data and get its rows. Extra: " + operators.describe(),
        {"sql": _SQL},
        ["sql"],
    ),
    _tool(
        "fill_template",
        "Answer with a JSON template whose empty slots rows fill. Path: its keys with dots; (column) is the row's "
        "value as key or 0-based index: series.(series_idx).data.(_row_id).y",
        {"template": {"type": "object"}, "fills": {"type": "array", "items": _FILL}},
        ["template", "fills"],
    ),
)

# The published names (H27) beside ours. BackfillData holds fills for the template of another call.
_QUERY = frozenset({"querydatastore"})
_TEMPLATE = frozenset({"filltemplate", "gentemplateandbackfill", "gentemplate"})
_BACKFILL = frozenset({"backfilldata"})
_KNOWN = _QUERY | _TEMPLATE | _BACKFILL
_ENVELOPE = frozenset({"id", "type", "name", "tool", "toolname", "action", "function"})
_ARGUMENTS = ("arguments", "args", "parameters", "input", "actioninput")


@dataclass(frozen=True)
class _Call:
    """A call, native or out of the text, before anything is known of its arguments."""

    name: str
    arguments: Any
    native: ToolCall | None
    beside: str


def decide(reply: ModelReply) -> Decision:
    """What the model wants. ReplyError where the reply holds neither a usable call nor a text."""
    problems: list[str] = []
    text = without_thoughts(reply.text[:MAX_TEXT])
    native = [_Call(call.name, call.arguments, call, text) for call in reply.tool_calls[:_MAX_CALLS]]
    decision = _from_calls(native, problems)
    if decision is not None:
        return decision
    written = list(islice(_written_calls(text), _MAX_CALLS))
    unusable: list[str] = []
    decision = _from_calls(written, unusable)
    if decision is not None:
        return decision
    if not written and (sql := _sql_alone(text)):
        return Query(sql, None)
    # A text that is nothing but a broken or unknown call is no answer; anything else the user can read.
    if text and not any(not call.beside for call in written):
        return Direct(text)
    problems += unusable
    if not problems:
        raise ReplyError("the model's reply is empty: it holds no text and no call")
    raise ReplyError(("the model's reply holds no usable call: " + "; ".join(problems))[:800])


def _tool_name(name: str) -> str:
    return fold(name.rsplit(".", 1)[-1].rsplit(":", 1)[-1])


def _from_calls(calls: Sequence[_Call], problems: list[str]) -> Decision | None:
    """The decision of the first usable call; the reasons why the others are not go to `problems`."""
    loose: list[Any] = []
    for call in calls:
        if _tool_name(call.name) in _BACKFILL:
            loose.append(call.arguments)
    for call in calls:
        name = _tool_name(call.name)
        if name not in _KNOWN:
            problems.append(f"there is no tool {call.name[:80]!r}, only query_datastore and fill_template")
            continue
        value = as_object(call.arguments)
        if value is None and name in _QUERY and (bare := _bare_sql(call.arguments)):
            value = {"sql": bare}
        if value is None:
            problems.append(f"the arguments of {call.name} are no JSON object: {str(call.arguments)[:80]!r}")
            continue
        try:
            if name in _QUERY:
                return Query(_need_sql(value), call.native, call.beside)
            return _template(value, loose if name in _TEMPLATE else [value], call)
        except _Unusable as reason:
            problems.append(f"{call.name}: {reason}")
    return None


_STATEMENT = re.compile(r"\s*\(*\s*(?:SELECT|WITH|FROM|PIVOT)\s", re.IGNORECASE)
_FENCED = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n([^`]*)```", re.IGNORECASE)
_WRITTEN = re.compile(
    r"(?:query_?datastore)\s*\(\s*(?:sql\s*[=:]\s*)?(?P<quote>\"{3}|'{3}|\"|'|`)(?P<sql>.*)(?P=quote)\s*,?\s*\)",
    re.IGNORECASE | re.DOTALL,
)


def _bare_sql(arguments: Any) -> str:
    """The statement that arguments are which are no object; "" where they are none."""
    if not isinstance(arguments, str) or len(arguments) > MAX_TEXT:
        return ""
    text = arguments.strip()
    if text[:1] == '"':
        read = parse(text)
        text = read.strip() if isinstance(read, str) else text
    fenced = _FENCED.fullmatch(text)
    text = fenced[1].strip() if fenced else text
    return text if _STATEMENT.match(text) else ""


def _sql_alone(text: str) -> str:
    """The statement that a text is nothing but: one fence, or a call as a programmer writes it."""
    text = text.strip()
    fenced = _FENCED.fullmatch(text)
    if fenced:
        text = fenced[1].strip()
        if _STATEMENT.match(text):
            return text
    call = _WRITTEN.fullmatch(text.strip("` \n"))
    if call is None:
        return ""
    sql = call["sql"]
    if len(call["quote"]) == 1:
        sql = re.sub(r"\\([\"'`\\])", r"\1", sql).replace("\\n", "\n")
    return sql.strip() if _STATEMENT.match(sql) else ""


class _Unusable(Exception):
    """Why a call can't be used."""


def _need_sql(value: Mapping[str, Any]) -> str:
    sql = _sql(value)
    if not sql:
        raise _Unusable("it has no `sql`")
    return sql


def _template(value: Mapping[str, Any], loose: Sequence[Any], call: _Call) -> Template:
    template = first(value, "template", "skeleton", "chart", "spec")
    if isinstance(template, str):
        template = parse(template)
    if not isinstance(template, (dict, list)):
        raise _Unusable("it has no `template` that is an object or a list")
    given = first(value, "fills", "fill", "backfill", "backfills", "backfilldata")
    if isinstance(given, str):
        given = parse(given)
    if given is None:
        given = [value] if _sql(value) else list(loose)
    if isinstance(given, dict):
        given = [given]
    if not isinstance(given, list) or not given:
        raise _Unusable("it has no `fills`")
    if len(given) > _MAX_FILLS:
        raise _Unusable(f"it has more than {_MAX_FILLS} fills")
    fills = tuple(_fill(item, number) for number, item in enumerate(given))
    return Template(template, fills, call.native, call.beside)


def _fill(item: Any, number: int) -> Fill:
    value = as_object(item)
    if value is not None and not _sql(value):
        value = as_object(first(value, *_ARGUMENTS))
    if value is None or not _sql(value):
        raise _Unusable(f"fill {number} has no `sql`")
    given = first(value, "mappings", "mapping", "paths", "pathmappings")
    if isinstance(given, str):
        given = parse(given)
    if isinstance(given, dict):
        single = _text_of(given, "column", "col") and _text_of(given, "path")
        given = [given] if single else list(given.items())
    if not isinstance(given, list) or not given:
        raise _Unusable(f"fill {number} has no `mappings` of {{column, path}}")
    if len(given) > _MAX_MAPPINGS:
        raise _Unusable(f"fill {number} has more than {_MAX_MAPPINGS} mappings")
    mappings = []
    for entry in given:
        if isinstance(entry, (list, tuple)) and len(entry) == 2:
            column, path = entry
        elif isinstance(entry, dict):
            column, path = _text_of(entry, "column", "col"), _text_of(entry, "path")
        else:
            column = path = ""
        if not isinstance(column, str) or not isinstance(path, str) or not column or not path:
            raise _Unusable(f"a mapping of fill {number} is not {{column, path}}: {str(entry)[:80]!r}")
        mappings.append(FillMapping(column, path))
    return Fill(_sql(value), tuple(mappings))


def _text_of(value: Mapping[str, Any], *names: str) -> str:
    found = first(value, *names)
    return found.strip() if isinstance(found, str) else ""


def _sql(value: Mapping[str, Any]) -> str:
    return _text_of(value, "sql", "query", "statement")


def _written_calls(text: str) -> Iterator[_Call]:
    """The calls that the JSON documents of `text` are."""
    for found in documents(text):
        beside = re.sub(r"```[ \t]*[\w+-]*\s*```", "", text[: found.start] + text[found.stop :]).strip(" \n`")
        for item in found.value if isinstance(found.value, list) else [found.value]:
            yield from _calls_of(item, "" if beside.lower() == "json" else beside)


def _calls_of(value: Any, beside: str, depth: int = 0) -> Iterator[_Call]:
    if not isinstance(value, dict) or depth > 3:
        return
    folded = {fold(key): item for key, item in value.items()}
    for wrapper in ("toolcalls", "toolcall", "functioncall", "tooluse", "function"):
        inner = folded.get(wrapper)
        if isinstance(inner, (dict, list)):
            for item in inner if isinstance(inner, list) else [inner]:
                yield from _calls_of(item, beside, depth + 1)
    names = (folded.get(key) for key in ("name", "tool", "toolname", "function", "action"))
    name = next((item for item in names if isinstance(item, str)), None)
    arguments = next((folded[key] for key in _ARGUMENTS if key in folded), None)
    if name is not None and _tool_name(name) in _KNOWN:
        rest = {key: item for key, item in value.items() if fold(key) not in _ENVELOPE}
        yield _Call(name, rest if arguments is None else arguments, None, beside)
    elif name is not None and arguments is not None and set(folded) <= _ENVELOPE | set(_ARGUMENTS):
        yield _Call(name, arguments, None, beside)
    elif "template" in folded and ("fills" in folded or "backfilldata" in folded):
        yield _Call("fill_template", value, None, beside)
    elif set(folded) == {"sql"}:
        yield _Call("query_datastore", value, None, beside)
    else:
        # {"query_datastore": {"sql": ...}}, {"GenTemplateAndBackfill": {...}, "BackfillData": {...}}
        for key, item in value.items():
            if fold(key) in _KNOWN and isinstance(item, (dict, str)):
                yield _Call(key, item, None, beside)
