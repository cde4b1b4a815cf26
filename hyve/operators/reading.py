"""What the operators' macros have in common: rows of the named table, checked columns, times (SQL as text).

Rules:
- Columns are given by name, in any case; one that isn't there is an error that names those that are. In a list one that
  holds a comma stands in double quotes: 'zone, "a, b"'. `query_table` and COLUMNS are bound when the macro is called,
  so it works on CTEs too; `_rows` adds an empty column to what it reads, because COLUMNS may not select nothing.
- A time is a timestamp, a date, text in ISO 8601, or a number of seconds, milliseconds, microseconds or nanoseconds
  since 1970, by its size. Without a name the first column is taken that is called like a time and holds any. Anything
  else has no time; rows then count in their order.
- Everything inside begins with "_", because a macro's parameters hide columns of the same name.
"""

from __future__ import annotations

ROWS = '_rows AS (SELECT *, NULL AS "_none" FROM query_table(tbl))'

TIME_NAMES = (
    "^@?(time|timestamp|ts|t|datetime|date|bucket|time_bucket|start|start_time|starttime|event_time|eventtime)$"
    "|^(second|minute|hour|day)$|timestamp|_ts$|(^|_)bucket$"
)


def check(
    *parameters: str, lists: str = "", numeric: str = "", needed: str = "", positive: str = "", count: str = ""
) -> str:
    """`_check`, whose one row is true, or an error: a column of `parameters` or of the list `lists` is missing, the
    column of the parameter `numeric` holds no numbers, the column `needed` isn't given, or `positive` or `count` is no
    such number. No row where the table is empty."""
    given = f"list_value({', '.join(f'CAST({name} AS VARCHAR)' for name in parameters)})"
    if lists:
        given = f"list_concat({given}, {split(lists)})"
    kind = f"typeof({column(numeric)})" if numeric else "''"
    beside = f"regexp_replace(lower(c), '__?num$', '') = lower({numeric}) AND c ILIKE '%num'" if numeric else "false"
    wrong = (
        f"WHEN regexp_matches(_kind, 'CHAR|JSON|TIME|DATE|INTERVAL|BLOB|BIT|UUID|STRUCT|MAP|\\[') THEN "
        f"error({numeric} || ' is ' || _kind || ', not numbers; '"
        f" || CASE WHEN len(_numbers) > 0 THEN 'take ' || _numbers[1]"
        f" ELSE 'make numbers of it first: WITH x AS (SELECT ..., TRY_CAST(... AS DOUBLE) AS v FROM ' || tbl"
        f" || ')' END) "
        if numeric
        else ""
    )
    by_name = "give what follows the columns by name, such as series := ''host''"
    numbers = ""
    if needed:
        told = "error('name a column of ' || tbl || '; it has ' || array_to_string(_shown[1:50], ', '))"
        numbers += f"WHEN {needed} IS NULL THEN {told} "
    for name, fits, what in (
        (positive, f"TRY_CAST({positive} AS DOUBLE) BETWEEN 1e-300 AND 1e300", "a number over 0"),
        (count, f"TRY_CAST({count} AS BIGINT) >= 0", "a whole number from 0 on"),
    ):
        if name:
            given_as = f"left(coalesce(CAST({name} AS VARCHAR), 'NULL'), 100)"
            told = f"error('{name} must be {what}, not ' || {given_as} || '; {by_name}')"
            numbers += f"WHEN NOT coalesce({fits}, false) THEN {told} "
    return f"""_names AS (
    SELECT list_filter(json_keys(to_json(_rows)), lambda c: c <> '_none') AS _names,
           list_transform(_names, lambda c: lower(c)) AS _lower,
           list_transform(_names, lambda c: CASE WHEN contains(c, ',') THEN '"' || c || '"' ELSE c END) AS _shown,
           {kind} AS _kind,
           list_filter(_names, lambda c: {beside}) AS _numbers,
           list_filter({given}, lambda c: c IS NOT NULL AND NOT list_contains(_lower, lower(c))) AS _missing
    FROM _rows LIMIT 1
), _check AS (
    SELECT CASE
        {numbers}WHEN len(_missing) > 0 THEN error(
            tbl || ' has no column ' || left(_missing[1], 100) || '; it has ' || array_to_string(_shown[1:50], ', '))
        {wrong}ELSE true END AS _ok
    FROM _names
)"""


def where(condition: str) -> str:
    """`condition`, but never without `_check`: of a missing column DuckDB knows that it is NULL, and reads no row."""
    return f"CASE WHEN (SELECT _ok FROM _check) THEN {condition} ELSE true END"


def column(parameter: str) -> str:
    """The column that the parameter names."""
    return f"coalesce(*COLUMNS(lambda c: lower(c) = lower(CAST({parameter} AS VARCHAR)) OR c = '_none'))"


def split(parameter: str) -> str:
    """The names in a text such as 'service, "a, b"'; none for NULL."""
    names = f"""regexp_extract_all(CAST({parameter} AS VARCHAR), '\\s*"(?:[^"]|"")*"\\s*|[^,]+')"""
    bare = """CASE WHEN regexp_matches(trim(c), '^".+"$')
        THEN array_to_string(string_split(trim(c)[2:-2], '""'), '"') ELSE trim(c) END"""
    return f"coalesce(list_filter(list_transform({names}, lambda c: {bare}), lambda c: c <> ''), [])"


def named(parameter: str) -> str:
    """Whether a column `c` is one of those that a list names."""
    return f"list_contains(list_transform({split(parameter)}, lambda s: lower(s)), lower(c))"


def most(parameter: str) -> str:
    """LIMIT: the number that `check` found good, and one row where it will not."""
    return f"LIMIT CASE WHEN TRY_CAST({parameter} AS BIGINT) >= 0 THEN TRY_CAST({parameter} AS BIGINT) ELSE 1 END"


def time_columns(parameter: str) -> str:
    """Whether a column `c` is the time that `parameter` names, or could be one where it is NULL."""
    return (
        f"CASE WHEN {parameter} IS NULL THEN regexp_matches(c, '{TIME_NAMES}', 'i')"
        f" ELSE lower(c) = lower(CAST({parameter} AS VARCHAR)) END"
    )


def times(parameter: str) -> str:
    """Nanoseconds since 1970 of every column that `time_columns` finds, under the columns' own names."""
    scale = (
        "CASE WHEN x < 1e8 THEN NULL WHEN x < 1e11 THEN 1e9 WHEN x < 1e14 THEN 1e6 WHEN x < 1e17 THEN 1e3 ELSE 1 END"
    )
    number = f"list_transform([TRY_CAST(x AS DOUBLE)], lambda x: TRY_CAST(x * {scale} AS BIGINT))[1]"
    return (
        f"list_transform([COLUMNS(lambda c: {time_columns(parameter)} OR c = '_none')],"
        f" lambda x: coalesce(epoch_ns(TRY_CAST(x AS TIMESTAMP_NS)), {number}))[1]"
    )


def first_of(*own: str) -> str:
    """The first of a CTE's columns that is not among `own` and is not NULL."""
    listed = ", ".join(f"'{name}'" for name in own)
    return f"coalesce(*COLUMNS(lambda c: c NOT IN ({listed})))"
