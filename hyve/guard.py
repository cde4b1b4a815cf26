"""Which statements of a model may run (H32): exactly one that only reads, and only this request's tables.

Rules:
- DuckDB's own parser is the authority: its tree (`json_serialize_sql`) is walked, and every query node, table
  reference, expression class and function in it must be on an allow-list. What is not listed is refused.
- sqlglot must read the same text the same way: one statement, nothing that writes, no other table.
- A CTE's name counts as a table only where DuckDB would see it: after its definition, and inside of it only
  where it is recursive. Otherwise `WITH x AS (FROM x)` would read a catalog view named x.
- Functions are called by their bare names: a qualified one could pass by the bounded macros of
  `hyve.sql.connect`.
- A refusal says what was refused and what to write instead.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from hyve import operators, pivots
from hyve.errors import SqlRefused

MAX_SQL = 32_768
"""Characters of the longest statement that is looked at."""

_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_REFERENCES = frozenset(
    {"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT", "SHOW_REF"}
)
_MODIFIERS = frozenset(
    {"DISTINCT_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER"}
    | {"ASCENDING", "DESCENDING", "ORDER_DEFAULT"}
)
_NODES = _QUERIES | _REFERENCES | _MODIFIERS
_EXPRESSIONS = frozenset(
    {
        "COLUMN_REF",
        "STAR",
        "CONSTANT",
        "FUNCTION",
        "COMPARISON",
        "CAST",
        "TYPE",
        "CASE",
        "BETWEEN",
        "OPERATOR",
    }
    | {"SUBQUERY", "WINDOW", "LAMBDA", "LAMBDA_REF", "POSITIONAL_REFERENCE", "COLLATE", "CONJUNCTION"}
)
_TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series", "json_each", "json_tree"})

# Left out on purpose: what reads settings, variables, sequences, the catalog or other SQL (current_setting,
# getenv, getvariable, nextval, query, json_execute_serialized_sql, pg_*, has_*_privilege, stats), what writes
# (write_log) and what waits (sleep_ms, pg_sleep).
_NAMES = """
    !__postfix !~~ !~~* % & && * ** + - -> ->> / // < <-> << <= <=> <@ = <> != > >= >> @ @> ^ ^@ | || ~
    ~~ ~~* ~~~ __between __cast

    any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null
    arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or
    bit_xor bool_and bool_or corr count count_if count_star countif covar_pop covar_samp entropy favg
    first fsum geomean geometric_mean group_concat histogram histogram_exact kahan_sum kurtosis
    kurtosis_pop last list listagg lttb mad max max_by mean median min min_by mode percentile_cont
    percentile_disc product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy reservoir_quantile sem skewness stddev
    stddev_pop stddev_samp string_agg sum sum_no_overflow sumkahan var_pop var_samp variance wavg
    weighted_avg grouping grouping_id

    cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense
    row_number

    abs acos acosh add alias asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees
    divide even exp factorial fdiv floor fmod gamma gcd greatest greatest_common_divisor isfinite isinf
    isnan lcm least least_common_multiple lgamma ln log log10 log2 mod multiply nextafter pi pow power
    radians round round_even roundbankers sign signbit sin sinh sqrt subtract tan tanh trunc xor
    equi_width_bins is_histogram_other_bin random

    ago age century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc
    day dayname dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era
    hour isodow isoyear julian last_day make_date make_time make_timestamp make_timestamp_ms
    make_timestamp_ns make_timestamptz microsecond millennium millisecond minute month monthname
    nanosecond normalized_interval now quarter second strftime strptime time_bucket timezone timezone_hour
    timezone_minute to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds
    to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today transaction_timestamp
    try_strptime week weekday weekofyear year yearweek current_date current_localtime
    current_localtimestamp get_current_time get_current_timestamp current_time current_timestamp

    array_to_string array_to_string_comma_default ascii bar base64 bin bit_length bit_position char_length
    character_length chr concat concat_ws contains damerau_levenshtein decode editdist3 encode ends_with
    format format_bytes formatreadabledecimalsize formatreadablesize from_base64 from_binary from_hex
    get_bit hamming hash hex ilike_escape instr jaccard jaro_similarity jaro_winkler_similarity lcase left
    left_grapheme len length length_grapheme levenshtein like_escape lower lpad ltrim md5 md5_number
    md5_number_lower md5_number_upper mismatches nfc_normalize not_ilike_escape not_like_escape
    octet_length ord parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path
    pg_size_pretty position prefix printf regexp_escape regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table repeat
    replace reverse right right_grapheme rpad rtrim sha1 sha256 split split_part starts_with str_split
    str_split_regex string_split string_split_regex string_to_array strip_accents strlen strpos substr
    substring substring_grapheme suffix to_base to_base64 to_binary to_hex translate trim ucase unbin
    unhex unicode upper url_decode url_encode overlay

    aggregate apply array_aggr array_aggregate array_append array_apply array_cat array_concat
    array_contains array_cosine_distance array_cosine_similarity array_cross_product array_distance
    array_distinct array_dot_product array_extract array_filter array_grade_up array_has array_has_all
    array_has_any array_indexof array_inner_product array_intersect array_length
    array_negative_dot_product array_negative_inner_product array_pop_back array_pop_front array_position
    array_prepend array_push_back array_push_front array_reduce array_resize array_reverse
    array_reverse_sort array_select array_slice array_sort array_transform array_unique array_value
    array_where array_zip cardinality element_at filter flatten generate_series generate_subscripts
    grade_up list_aggr list_aggregate list_any_value list_append list_apply list_approx_count_distinct
    list_avg list_bit_and list_bit_or list_bit_xor list_bool_and list_bool_or list_cat list_concat
    list_contains list_cosine_distance list_cosine_similarity list_count list_distance list_distinct
    list_dot_product list_element list_entropy list_extract list_filter list_first list_grade_up list_has
    list_has_all list_has_any list_histogram list_indexof list_inner_product list_intersect list_kurtosis
    list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode list_negative_dot_product
    list_negative_inner_product list_pack list_position list_prepend list_product list_reduce list_resize
    list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort list_stddev_pop
    list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop
    list_var_samp list_where list_zip map map_concat map_contains map_contains_entry map_contains_value
    map_entries map_extract map_extract_value map_from_entries map_keys map_values range reduce
    remap_struct row struct_concat struct_contains struct_extract struct_extract_at struct_has
    struct_indexof struct_insert struct_keys struct_pack struct_position struct_update struct_values
    union_extract union_tag union_value unnest unpivot_list

    array_to_json from_json from_json_strict json json_array json_array_length json_contains
    json_deep_merge json_each json_exists json_extract json_extract_path json_extract_path_text
    json_extract_string json_group_array json_group_object json_group_structure json_insert json_keys
    json_merge_patch json_merge_patch_diff json_normalize json_object json_pretty json_quote json_remove
    json_replace json_set json_strip_nulls json_structure json_transform json_transform_strict json_tree
    json_type json_valid json_value row_to_json to_json variant_extract variant_extract_string
    variant_keys variant_typeof

    constant_or_null enum_code enum_first enum_last enum_range enum_range_boundary error if ifnull nullif
    coalesce try_cast can_cast_implicitly typeof pg_typeof uuid_extract_timestamp uuid_extract_version
"""
_FUNCTIONS = frozenset(_NAMES.split())

AGGREGATES = frozenset(_NAMES.split("\n\n")[1].split())
"""Functions that make one value of many rows."""

_SCHEMAS = frozenset({"main", "system", "memory", "temp", "pg_catalog", "information_schema"})
_WIDE = re.compile(r"\d{4}|\*|\{[^{}]*\{")


def guard(sql: str, tables: Collection[str]) -> str:
    """The statement to run: `sql` without its last semicolon, operator names quoted. Else SqlRefused.

    `tables` are the names that may be read; they are compared without case, as DuckDB does. A PIVOT without a list of
    values comes back as it is: `hyve.sql.run` fills the values in and guards the outcome again.
    """
    text = _text(sql)
    allowed = {_fold(name) for name in tables}
    parsed = _tree(text)
    bare = _Walk(allowed, sorted(tables)).check(parsed)
    _second_opinion(text, allowed)
    return text if is_dynamic_pivot(text) else _quote_arguments(text, bare)


def _fold(name: str) -> str:
    # DuckDB folds ASCII letters only; str.lower would also fold the Kelvin sign to k.
    return re.sub(r"[A-Z]", lambda match: match.group().lower(), name)


def _text(sql: str) -> str:
    if not isinstance(sql, str):
        raise SqlRefused(f"the statement is {type(sql).__name__}, not text; send one SELECT statement as a string")
    if len(sql) > MAX_SQL:
        raise SqlRefused(f"the statement has {len(sql)} characters; the limit is {MAX_SQL}: write a shorter one")
    bad = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufeff]", sql)
    if bad:
        raise SqlRefused(
            f"the statement holds the character U+{ord(bad.group()):04X} at offset {bad.start()}; remove it"
        )
    text = sql.strip()
    while text.endswith(";"):
        text = text[:-1].rstrip()
    if not text:
        raise SqlRefused("the statement is empty; write one SELECT statement")
    return pivots.as_query(text)


_local = threading.local()
_inherited: list[duckdb.DuckDBPyConnection] = []
"""Connections of a forked process's parent: closing one here would wait for threads that only the parent has."""


def _parser() -> duckdb.DuckDBPyConnection:
    """An empty locked database whose parser is asked; one for each thread, and anew after a fork."""
    connection: duckdb.DuckDBPyConnection | None = getattr(_local, "parser", None)
    if connection is not None and _local.process != os.getpid():
        _inherited.append(connection)
        connection = None
    if connection is None:
        connection = duckdb.connect(
            ":memory:", config={"enable_external_access": "false", "threads": 1, "memory_limit": "256MB"}
        )
        connection.execute("SET lock_configuration = true")
        _local.parser, _local.process = connection, os.getpid()
    return connection


def tree(sql: str) -> dict[str, Any]:
    """DuckDB's own tree of the one statement that `sql` is; SqlRefused where it is none. No more is checked."""
    return _tree(_text(sql))


def _tree(text: str) -> dict[str, Any]:
    try:
        row = _parser().execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchone()
        parsed = json.loads(row[0]) if row else {}
    except (duckdb.Error, ValueError, RecursionError) as error:
        raise SqlRefused(f"the statement can't be read: {short(str(error))}") from None
    if parsed.get("error"):
        message = str(parsed.get("error_message", ""))
        if "Only SELECT" not in message:
            raise SqlRefused(f"the statement has a syntax error: {short(message)}")
        kind = _kind(text)
        if kind == "MULTI":
            return _tree(pivots.with_values(text, lambda _: ["x"]))
        if " and " in kind:
            raise SqlRefused(f"several statements were sent ({kind}); send exactly one SELECT statement")
        raise SqlRefused(f"{kind} is not allowed; write one SELECT statement that only reads")
    statements = parsed.get("statements", [])
    if len(statements) != 1:
        raise SqlRefused(f"{len(statements)} statements were sent; send exactly one SELECT statement")
    statement: dict[str, Any] = statements[0]
    return statement


def untree(statement: dict[str, Any]) -> str:
    """The text of a tree of `tree`. It has not been guarded."""
    try:
        whole = json.dumps({"error": False, "statements": [statement]})
        row = _parser().execute("SELECT json_deserialize_sql(?::JSON)", [whole]).fetchone()
    except (duckdb.Error, RecursionError) as error:
        raise SqlRefused(f"the statement can't be written out: {short(str(error))}") from None
    return str(row[0]) if row else ""


def _kind(text: str) -> str:
    try:
        kinds = [statement.type.name for statement in _parser().extract_statements(text)]
    except (duckdb.Error, ValueError):  # ValueError: a kind that DuckDB's Python module has no name for
        return "this statement"
    return kinds[0] if len(kinds) == 1 else " and ".join(kinds[:5])


def _is_value(argument: dict[str, Any]) -> bool:
    """A constant, or a cast of one (TIMESTAMP '2026-01-31')."""
    if argument.get("class") == "CAST":
        return _is_value(argument.get("child") or {})
    return argument.get("class") == "CONSTANT"


@dataclass(frozen=True)
class _Argument:
    """An operator's argument given as a bare name: where it stands, in bytes, and the name."""

    start: int
    length: int
    name: str


class _Walk:
    """One pass over DuckDB's tree. `visible` holds the CTE names in scope and is never mutated."""

    def __init__(self, allowed: set[str], names: list[str]) -> None:
        self.allowed = allowed
        self.names = names
        self.arguments: list[_Argument] = []

    def check(self, tree: dict[str, Any]) -> list[_Argument]:
        try:
            self.value(tree, frozenset())
        except RecursionError:
            raise SqlRefused("the statement is nested too deeply; write a simpler one") from None
        return self.arguments

    def value(self, value: Any, visible: frozenset[str]) -> None:
        if isinstance(value, dict):
            self.node(value, visible)
        elif isinstance(value, list):
            for item in value:
                self.value(item, visible)

    def node(self, node: dict[str, Any], visible: frozenset[str]) -> None:
        kind = node.get("type")
        if "class" in node:
            if node["class"] not in _EXPRESSIONS:
                what = "a parameter" if node["class"] == "PARAMETER" else f"{node['class']} ({kind})"
                raise SqlRefused(f"{what} is not allowed in a statement; write the value or a plain expression")
        elif isinstance(kind, str) and kind not in _NODES:
            raise SqlRefused(f"{kind.removesuffix('_QUERY_NODE')} is not allowed; write one SELECT that only reads")
        if "function_name" in node:
            self.function(node, _FUNCTIONS, "function")
        if kind == "BASE_TABLE" and "class" not in node:
            self.table(node, visible)
        elif kind == "TABLE_FUNCTION":
            self.table_function(node, visible)
            return
        elif kind == "SHOW_REF" and (node.get("show_type") not in ("DESCRIBE", "SUMMARY") or not node.get("query")):
            raise SqlRefused(f"SHOW is not allowed; DESCRIBE one of the tables: {self.listed()}")
        elif kind == "PIVOT" and any(entry.get("pivot_enum") for entry in node.get("pivots") or ()):
            raise SqlRefused("PIVOT over an enum type is not allowed; list the values: ON column IN ('a', 'b')")
        if kind == "RECURSIVE_CTE_NODE":
            visible = visible | {_fold(str(node.get("cte_name", "")))}
        ctes = (node.get("cte_map") or {}).get("map") or []
        for cte in ctes:
            self.value(cte.get("value"), visible)
            visible = visible | {_fold(str(cte.get("key", "")))}
        for key, child in node.items():
            if key != "cte_map":
                self.value(child, visible)

    def table(self, node: dict[str, Any], visible: frozenset[str]) -> None:
        name, schema = _fold(str(node.get("table_name", ""))), _fold(str(node.get("schema_name", "")))
        catalog = _fold(str(node.get("catalog_name", "")))
        if node.get("at_clause"):
            raise SqlRefused("AT is not allowed; the tables have one version")
        if not schema and not catalog and (name in visible or name in self.allowed):
            return
        if schema == "main" and catalog in ("", "memory") and name in self.allowed:
            return
        if schema == "recurring" and not catalog and name in visible:
            return
        given = ".".join(part for part in (catalog, schema, str(node.get("table_name", ""))) if part)
        raise self.no_table(given)

    def table_function(self, node: dict[str, Any], visible: frozenset[str]) -> None:
        call = node.get("function")
        if not isinstance(call, dict) or call.get("class") != "FUNCTION":
            raise SqlRefused("this table function is not allowed; read from the tables: " + self.listed())
        name = _fold(str(call.get("function_name", "")))
        self.function(call, _TABLE_FUNCTIONS | operators.names(), "table function")
        arguments = call.get("arguments") or []
        if name in operators.names():
            self.operator(name, arguments, visible)
        else:
            self.value(arguments, visible)
        self.value({key: child for key, child in node.items() if key not in ("function", "type")}, visible)

    def operator(self, name: str, arguments: list[dict[str, Any]], visible: frozenset[str]) -> None:
        """The first argument is the table, by position; the others are names, values and lists of values."""
        refused = SqlRefused(
            f"{name.upper()} takes a table first, then values and names (several as 'a, b'), "
            f"such as {name.upper()}('table', 'column', top := 3)"
        )
        for position, item in enumerate(arguments):
            argument = item.get("expression") or {}
            alias = _fold(str(item.get("name") or argument.get("alias") or ""))
            if alias == "tbl" or (alias and position == 0):
                raise refused
            given = None
            if argument.get("class") == "COLUMN_REF" and len(argument.get("column_names") or ()) == 1:
                given = str(argument["column_names"][0])
                self.arguments.append(
                    _Argument(int(argument["query_location"]), int(argument["query_location_length"]), given)
                )
            elif argument.get("class") == "CONSTANT" and isinstance(argument.get("literal"), dict):
                given = str(argument["literal"].get("text", ""))
            if position == 0:
                if given is None:
                    raise refused
                if not self.readable(given, visible):
                    raise self.no_table(given)
            elif given is None and not _is_value(argument):
                raise refused

    def readable(self, name: str, visible: frozenset[str]) -> bool:
        """Whether an operator may read `name`. It is a text there, and DuckDB would read dots in it as a path."""
        return _fold(name) in self.allowed or (_fold(name) in visible and re.fullmatch(r"\w+", name) is not None)

    def no_table(self, given: str) -> SqlRefused:
        return SqlRefused(f"there is no table {given[:80]!r} in this request; the tables are: {self.listed()}")

    def function(self, node: dict[str, Any], allowed: frozenset[str], what: str) -> None:
        name = _fold(str(node["function_name"]))
        if name not in allowed:
            raise SqlRefused(f"the {what} {name[:80]}() is not allowed; use plain SQL over: {self.listed()}")
        # `column.upper()` is read as a qualified name too, so only names of schemas and catalogs are refused.
        path = [_fold(str(node.get(key) or "")) for key in ("catalog", "schema")]
        if _SCHEMAS.intersection(path):
            raise SqlRefused(f"write {name}() without a schema in front")
        if name in ("printf", "format"):
            first = next((item.get("expression") or {} for item in node.get("arguments") or ()), {})
            text = (first.get("literal") or {}).get("text") if first.get("class") == "CONSTANT" else None
            if any(path) or not isinstance(text, str) or _WIDE.search(text):
                raise SqlRefused(f"{name}() needs a format that is written out and not wider than 999")

    def listed(self) -> str:
        return (", ".join(self.names[:20]) or "(none)") + (" ..." if len(self.names) > 20 else "")


_WRITES = (
    exp.DML,
    exp.DDL,
    exp.Command,
    exp.Into,
    exp.Set,
    exp.Pragma,
    exp.Attach,
    exp.Detach,
    exp.Copy,
    exp.Drop,
)
_READS = (exp.Query, exp.Values, exp.Pivot, exp.Summarize, exp.Describe)


_LIST_FUNCTIONS = re.compile(r"\b(?:apply|reduce)(?=\s*\()", re.IGNORECASE)


def _second_opinion(text: str, allowed: set[str]) -> None:
    """sqlglot must read the same: one statement, nothing but reading, no table but the request's."""
    # sqlglot takes these two functions of lists for another dialect's, of which it knows no lambda.
    text = _LIST_FUNCTIONS.sub(r"list_\g<0>", text)
    try:
        statements = [statement for statement in sqlglot.parse(text, dialect="duckdb") if statement is not None]
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise SqlRefused(
            f"a second parser can't read the statement, write it in simpler SQL: {short(str(error))}"
        ) from None
    if len(statements) != 1 or not isinstance(statements[0], _READS):
        raise SqlRefused("the statement is not exactly one SELECT; send one SELECT statement that only reads")
    ctes: set[str] = set()
    found: set[str] = set()
    for node in statements[0].walk():
        # sqlglot counts some statements that read (a Subquery, a Select) among DML or DDL.
        if isinstance(node, _WRITES) and not isinstance(node, _READS):
            raise SqlRefused(f"{type(node).__name__.upper()} is not allowed; write one SELECT that only reads")
        if isinstance(node, exp.CTE):
            ctes.add(_fold(node.alias))
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            found.add(_fold(node.name))
    unknown = found - allowed - ctes
    if unknown:
        raise SqlRefused(f"there is no table {min(unknown)[:80]!r} in this request")


def _quote_arguments(text: str, arguments: list[_Argument]) -> str:
    if not arguments:
        return text
    raw = text.encode()
    for argument in sorted(arguments, key=lambda item: item.start, reverse=True):
        literal = "'" + argument.name.replace("'", "''") + "'"
        raw = raw[: argument.start] + literal.encode() + raw[argument.start + argument.length :]
    return raw.decode()


def short(message: str) -> str:
    """DuckDB's message without its drawing of the statement, at most 400 characters."""
    kept = []
    for line in re.sub(r"\x1b\[\d*m", "", message).splitlines():
        if re.match(r"LINE \d+:", line):
            break
        if line.strip():
            kept.append(line.strip())
    return " ".join(kept).removeprefix("Invalid Input Error: ")[:400]


_PIVOT = re.compile(r"\bPIVOT", re.IGNORECASE)


def is_dynamic_pivot(statement: str) -> bool:
    """Whether `statement` holds a PIVOT whose values are still to be found."""
    return bool(_PIVOT.search(statement)) and _kind(statement) == "MULTI"
