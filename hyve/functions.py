"""Which of DuckDB's functions a statement may call, and the macros that stand in for some of them.

Rules:
- A function is listed where it is pure (or random), reads nothing but its arguments, and its work is bounded by them.
- One that makes much out of little (`repeat`, `range`, `levenshtein`) is shadowed by a macro with a bound.
- `now()` and its like are shadowed by the local time without a zone: all times of a store are in UTC and have no zone,
  and DuckDB refuses to compare a TIMESTAMP_NS with a TIMESTAMP WITH TIME ZONE.
- Some aggregates are refused over a window's frames that move with each row (`WHOLE_FRAME`, `SHORT_FRAME`).
"""

from __future__ import annotations

from contextlib import suppress

import duckdb

from hyve import operators

# Left out on purpose: what reads settings, variables, sequences, the catalog or other SQL (current_setting,
# getenv, getvariable, nextval, query, json_execute_serialized_sql, pg_*, has_*_privilege, stats), what writes
# (write_log) and what waits (sleep_ms, pg_sleep).
_NAMES = """
    !__postfix !~~ !~~* % & && * ** + - -> ->> / // < <-> << <= <=> <@ = <> != > >= >> @ @> ^ ^@ | || ~
    ~~ ~~* ~~~ __between __cast

    any_value approx_count_distinct approx_quantile approx_top_k bitstring_agg variant_group_array
    variant_group_object arbitrary arg_max arg_max_null
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
    equi_width_bins is_histogram_other_bin random binom gen_random_uuid uuid uuidv4 uuidv7

    ago age century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc
    day dayname dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era
    hour isodow isoyear julian last_day make_date make_time make_timestamp make_timestamp_ms
    make_timestamp_ns make_timestamptz microsecond millennium millisecond minute month monthname
    nanosecond normalized_interval now quarter second strftime strptime time_bucket timezone timezone_hour
    timezone_minute to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds
    to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today transaction_timestamp
    try_strptime week weekday weekofyear year yearweek current_date current_localtime
    current_localtimestamp get_current_time get_current_timestamp current_time current_timestamp

    array_to_string array_to_string_comma_default ascii bar base64 bin bitstring bit_length bit_position char_length
    character_length chr concat concat_ws contains damerau_levenshtein decode editdist3 encode ends_with
    format format_bytes formatreadabledecimalsize formatreadablesize from_base64 from_binary from_hex
    get_bit hamming hash hex ilike_escape instr jaccard jaro_similarity jaro_winkler_similarity lcase left
    left_grapheme len length length_grapheme levenshtein like_escape lower lpad ltrim md5 md5_number
    md5_number_lower md5_number_upper mismatches nfc_normalize not_ilike_escape not_like_escape
    octet_length ord parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path path_join
    pg_size_pretty position prefix printf regexp_escape regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table repeat
    replace reverse right right_grapheme rpad rtrim set_bit sha1 sha256 split split_part starts_with str_split
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
    variant_array_length variant_contains variant_exists variant_keys variant_normalize variant_type
    variant_typeof

    assert_true cast_to_type constant_or_null create_sort_key enum_code enum_first enum_last enum_range
    enum_range_boundary error if ifnull nullif coalesce try_cast can_cast_implicitly typeof pg_typeof
    uuid_extract_timestamp uuid_extract_version
"""

ALLOWED = frozenset(_NAMES.split())

AGGREGATES = frozenset(_NAMES.split("\n\n")[1].split())
"""Functions that make one value of many rows."""

WHOLE_FRAME = frozenset({"entropy", "histogram"})
"""Aggregates that take long to prepare for frames of a window that move, which no interrupt ends."""

SHORT_FRAME = frozenset({"approx_quantile", "mad", "mode", "reservoir_quantile"})
"""Aggregates that go through all of a window's frame for each row. DuckDB looks for an interrupt every 2,048 rows: over
a frame of 500,000 rows that is once a minute."""

TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series", "json_each", "json_tree"})

# The size is checked inside an argument: DuckDB folds constants in both branches of a CASE around the call.
_NUMBERS = "try_cast(b::VARCHAR AS DOUBLE) - try_cast(a::VARCHAR AS DOUBLE)) / try_cast(c::VARCHAR AS DOUBLE)"
_TIMES = (
    "epoch(try_cast(b::VARCHAR AS TIMESTAMP)) - epoch(try_cast(a::VARCHAR AS TIMESTAMP)))"
    " / epoch(try_cast(c::VARCHAR AS INTERVAL))"
)
_STEPS = f"coalesce(({_NUMBERS}, ({_TIMES})"
_SERIES = (("a", "a", "{a}"), ("a, b", "b - a", "a, {b}"), ("a, b, c", _STEPS, "a, b, {c}"))
_RESIZE = (("l, n", "n", "l, {n}"), ("l, n, v", "n", "l, {n}, v"))
_BOUNDED = (
    ("repeat", 100_000, "characters", (("s, n", "length(s) * n", "s, {n}"),)),
    ("lpad", 100_000, "characters", (("s, n, p", "n", "s, {n}, p"),)),
    ("rpad", 100_000, "characters", (("s, n, p", "n", "s, {n}, p"),)),
    ("bitstring", 100_000, "bits", (("s, n", "n", "s, {n}"),)),
    ("replace", 100_000_000, "characters", (("s, f, r", "length(s) * length(r)", "s, f, {r}"),)),
    (
        "regexp_replace",
        100_000_000,
        "characters",
        (("s, f, r", "length(s) * length(r)", "s, f, {r}"), ("s, f, r, o", "length(s) * length(r)", "s, f, {r}, o")),
    ),
    ("list_resize", 100_000, "values", _RESIZE),
    ("array_resize", 100_000, "values", _RESIZE),
    ("range", 100_000, "values", _SERIES),
    ("generate_series", 100_000, "values", _SERIES),
)
"""Function, the most it may make, of what; for each count of parameters: their names, how much they make, the call."""
_QUADRATIC = ("levenshtein", "editdist3", "damerau_levenshtein", "jaro_similarity", "jaro_winkler_similarity")
_PRODUCT = 1_000_000
_NOW = ("now", "current_timestamp", "get_current_timestamp", "transaction_timestamp")
# DuckDB's own epoch_ms() fails on TIMESTAMP_NS. Times before 1970 are rounded down, as it does. Where a macro can't
# know the type of its argument, as of an aggregate, the first form is taken.
_EPOCH_MS = (
    "(t TIMESTAMP_NS) AS epoch_ns(t) // 1000000 - (epoch_ns(t) % 1000000 < 0)::BIGINT, (t) AS system.main.epoch_ms(t)"
)


def arm(connection: duckdb.DuckDBPyConnection) -> None:
    """Set what `open_database` does not, and create the macros and operators. Before the settings are locked."""
    # Most models write `x -> x + 1`. DuckDB 2 refuses that unless asked; a later one may not know the setting.
    with suppress(duckdb.CatalogException):
        connection.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")
    for name in _NOW:
        connection.execute(f"CREATE MACRO {name}() AS current_localtimestamp()")
    connection.execute(f"CREATE MACRO epoch_ms{_EPOCH_MS}")
    for name, most, what, forms in _BOUNDED:
        bodies = []
        for parameters, size, call in forms:
            said = f"{name}() could make over {most} {what}; ask for fewer"
            checked = {item: _unless(f"{size} > {most}", said, item) for item in parameters.split(", ")}
            bodies.append(f"({parameters}) AS system.main.{name}({call.format_map(checked)})")
        connection.execute(f"CREATE MACRO {name}{', '.join(bodies)}")
    for name in _QUADRATIC:
        said = f"{name}() compares texts of up to 1000 characters; shorten them with left(text, 1000)"
        first = _unless(f"length(a) * length(b) > {_PRODUCT}", said, "a")
        connection.execute(f"CREATE MACRO {name}(a, b) AS system.main.{name}({first}, b)")
    operators.install(connection)


def _unless(wrong: str, said: str, item: str) -> str:
    """SQL that is `item`, or fails with `said` where `wrong` holds.

    By a cast that fails: DuckDB's own `error()` is volatile, and an expression with one in it can't be partitioned by.
    The empty text that is added keeps the cast from being folded, for then it would fail always.
    """
    fails = f"CAST('{said}' || left(({item})::VARCHAR, 0) AS INTEGER)"
    return f"CASE WHEN {wrong} THEN list_extract([{item}], {fails}) ELSE {item} END"
