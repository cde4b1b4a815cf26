## of every kind
SELECT 1
SELECT 1;
SELECT count(*) OVER (PARTITION BY regexp_replace(name, '\d+', '#', 'g')) AS alike, name FROM spans LIMIT 5
SELECT service, row_number() OVER (PARTITION BY replace(lower(service), '-', '_') ORDER BY time) AS n FROM spans
SELECT name, sum(duration_ms) OVER (PARTITION BY lpad(name, 20, ' ') ORDER BY repeat(service, 2)) AS total FROM spans
select count(*) from spans
SELECT * FROM main.spans
SELECT * FROM memory.main.spans
SELECT * FROM "odd name"
SELECT * FROM SPANS LIMIT 3
FROM spans
FROM spans SELECT service, count(*) GROUP BY ALL
FROM (FROM spans) LIMIT 2
TABLE spans
VALUES (1, 'a'), (2, 'b')
SUMMARIZE spans
DESCRIBE spans
DESCRIBE SELECT service, duration_ms FROM spans
SELECT * FROM (SUMMARIZE spans)
SELECT column_name FROM (DESCRIBE spans)
SELECT service, avg(duration_ms) FROM spans GROUP BY service ORDER BY 2 DESC NULLS LAST LIMIT 10 OFFSET 1
SELECT DISTINCT service FROM spans
SELECT DISTINCT ON (service) service, name FROM spans ORDER BY service, time
SELECT service, count(*) FILTER (WHERE status = 'error') * 100.0 / count(*) AS rate FROM spans GROUP BY 1
SELECT time_bucket(INTERVAL '1 minute', time::TIMESTAMP) AS t, count(*) FROM spans GROUP BY t ORDER BY t
SELECT date_trunc('minute', time), quantile_cont(duration_ms, 0.99) FROM spans GROUP BY 1 ORDER BY 1
SELECT approx_quantile(duration_ms, [0.5, 0.9, 0.99]) FROM spans
SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms) FROM spans
SELECT median(duration_ms), mad(duration_ms), stddev(duration_ms), skewness(duration_ms) FROM spans
SELECT corr(duration_ms, code), regr_slope(duration_ms, code) FROM spans
SELECT service, duration_ms, row_number() OVER (PARTITION BY service ORDER BY duration_ms DESC) AS n FROM spans QUALIFY n <= 2
SELECT time, lag(duration_ms) OVER w, lead(duration_ms, 2, 0) OVER w FROM spans WINDOW w AS (PARTITION BY service ORDER BY time)
SELECT avg(duration_ms) OVER (ORDER BY time ROWS BETWEEN 5 PRECEDING AND CURRENT ROW) FROM spans
SELECT count(*) OVER (ORDER BY time RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING AND CURRENT ROW) FROM spans
SELECT ntile(4) OVER (ORDER BY duration_ms), cume_dist() OVER (ORDER BY code), first_value(name) OVER (ORDER BY time) FROM spans
WITH e AS (SELECT * FROM spans WHERE status = 'error') SELECT service, count(*) FROM e GROUP BY 1
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
WITH a(x) AS MATERIALIZED (SELECT 1) SELECT x FROM a
WITH spans AS (SELECT service FROM spans) SELECT * FROM spans
WITH RECURSIVE up AS (SELECT span_id, parent_span_id, 0 AS depth FROM spans WHERE parent_span_id IS NULL UNION ALL SELECT s.span_id, s.parent_span_id, depth + 1 FROM spans s JOIN up ON s.parent_span_id = up.span_id) SELECT max(depth) FROM up
SELECT p.service, c.service, count(*) FROM spans c JOIN spans p ON c.parent_span_id = p.span_id GROUP BY ALL
SELECT * FROM spans s LEFT JOIN logs l USING (trace_id)
SELECT * FROM spans s SEMI JOIN logs l ON s.trace_id = l.trace_id
SELECT * FROM spans s ANTI JOIN logs l ON s.trace_id = l.trace_id
SELECT l.body, m.value FROM logs l ASOF JOIN metrics m ON l.service = m.service AND l.time >= m.time
SELECT * FROM logs POSITIONAL JOIN metrics
SELECT * FROM spans CROSS JOIN (VALUES (1), (2)) AS v(x)
SELECT s.service, x.n FROM spans s, LATERAL (SELECT count(*) AS n FROM logs l WHERE l.service = s.service) x
SELECT service FROM spans UNION SELECT service FROM logs EXCEPT SELECT 'x' ORDER BY 1
SELECT service, code FROM spans UNION ALL BY NAME SELECT service FROM logs
SELECT service FROM spans WHERE service IN (SELECT service FROM logs WHERE severity = 'ERROR')
SELECT EXISTS (SELECT 1 FROM logs WHERE body LIKE '%timeout%')
SELECT service, (SELECT max(time) FROM logs l WHERE l.service = s.service) FROM spans s
PIVOT spans ON status USING count(*) GROUP BY service
PIVOT spans ON status IN ('ok', 'error') USING avg(duration_ms) GROUP BY service
SELECT * FROM (PIVOT spans ON status USING count(*) GROUP BY service) ORDER BY service
WITH e AS (SELECT service, status FROM spans) PIVOT e ON status USING count(*)
UNPIVOT metrics ON value, code INTO NAME n VALUE v
SELECT service, count(*) FROM spans GROUP BY ROLLUP (service)
SELECT service, status, grouping(service), count(*) FROM spans GROUP BY CUBE (service, status)
SELECT service, status, count(*) FROM spans GROUP BY GROUPING SETS ((service), (status), ())
SELECT attributes->>'$.pool', json_extract_string(attributes, '$.pool'), attributes->'$.n' FROM logs
SELECT json_keys(attributes), json_array_length('[1,2]'), json_type(attributes) FROM logs
SELECT key, value FROM logs, json_each(attributes)
SELECT to_json({'a': service}), json_object('a', code), json_group_array(code) FROM spans GROUP BY ALL
SELECT unnest([1, 2, 3]), unnest({'a': 1, 'b': 2})
SELECT t.x FROM (SELECT [1, 2] AS l) s, unnest(s.l) AS t(x)
SELECT [x * 2 FOR x IN [1, 2, 3] IF x > 1]
SELECT list_transform([1, 2], lambda x: x + 1), list_filter([1, 2], lambda x: x > 1), list_sum([1, 2])
SELECT list(name ORDER BY time)[1:3], array_agg(DISTINCT service), string_agg(service, ', ') FROM spans
SELECT list_sort(list_distinct(['b', 'a', 'b'])), len([1, 2]), [1, 2][1], 'abc'[1]
SELECT map {'a': 1}['a'], map_keys(map {'a': 1}), struct_pack(a := 1).a, {'a': {'b': 2}}.a.b
SELECT histogram(code), arg_max(name, duration_ms), max_by(name, duration_ms), mode(service) FROM spans
SELECT regexp_extract(body, 'code=(\d+)', 1), regexp_replace(body, '\d+', 'N', 'g') FROM logs
SELECT body FROM logs WHERE body ~ 'time.*out' OR body ILIKE '%Pool%' OR regexp_matches(body, 'x')
SELECT split_part(body, ' ', 1), upper(service), length(body), substr(body, 1, 5), concat_ws('-', 'a', 'b') FROM logs
SELECT body.upper().left(3), lpad('7', 3, '0'), repeat('ab', 3), printf('%05.2f', 1.5), format('{:>5}', 1) FROM logs
SELECT CASE WHEN code >= 500 THEN 'bad' WHEN code IS NULL THEN 'none' ELSE 'good' END FROM spans
SELECT coalesce(status, 'x'), nullif(code, 0), ifnull(code, 1), if(code > 1, 'a', 'b'), greatest(1, 2) FROM spans
SELECT try_cast('x' AS INT), CAST('1' AS BIGINT), code::VARCHAR, TRY(1 // 0) FROM spans
SELECT extract(hour FROM time), strftime(time, '%H:%M'), epoch_ms(time::TIMESTAMP), dayname(time) FROM spans
SELECT time - INTERVAL 5 MINUTE, date_diff('second', min(time), max(time)) FROM spans GROUP BY time
SELECT * EXCLUDE (trace_id) REPLACE (round(duration_ms, 1) AS duration_ms) FROM spans
SELECT COLUMNS('dur.*|code') FROM spans
SELECT max(COLUMNS(* EXCLUDE (name, service))) FROM spans
SELECT * FROM range(5) t(i)
SELECT * FROM generate_series(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-02', INTERVAL 1 HOUR)
SELECT range(3), generate_series(1, 3)
SELECT * FROM spans USING SAMPLE 10 ROWS
SELECT * FROM spans TABLESAMPLE 50%
SELECT code BETWEEN 200 AND 299, code NOT IN (404), code IS DISTINCT FROM 1, NOT (code > 3 AND true) FROM spans
SELECT -code, code % 7, code // 2, 2 ** 3, abs(-1), round(1.234, 2), ln(2), 5 & 3, 5 << 1 FROM spans
SELECT 1 AS a -- a remark; not a statement<U+000A>, 2 AS b /* DROP TABLE spans; */
SELECT 'a;b', $$it's; fine$$, E'tab\t', 'it''s', '日本語 ☃'
SELECT "service" FROM spans WHERE "name" = 'DROP TABLE spans'
SELECT 'read_csv(''x.csv'')' AS text
SELECT service AS "select" FROM spans
SELECT time FROM spans ORDER BY ALL
SELECT count(*) FROM spans HAVING count(*) > 0
SELECT * FROM detect_anomaly('spans', 'duration_ms')
SELECT high, low FROM DETECT_ANOMALY(spans, duration_ms)
WITH m AS (SELECT code, count(*) AS n FROM spans GROUP BY 1) SELECT * FROM detect_anomaly(m, n, k := 5, top := 2)
PIVOT (SELECT points FROM detect_anomaly(spans, duration_ms)) ON points USING count(*)
SELECT service FROM spans LIMIT 50%
SELECT entropy(service), approx_count_distinct(service), kurtosis(code), product(1), bool_or(true) FROM spans
SELECT levenshtein('abc', 'abd'), jaccard('ab', 'bc'), starts_with('abc', 'a'), contains('abc', 'b'), md5('x')
## counting and filtering
SELECT salary FROM employees WHERE name = 'Employee 7'
SELECT department FROM employees WHERE name ILIKE 'employee 1%'
SELECT count(*) FROM employees WHERE department = 'Engineering'
SELECT count(*) FROM employees WHERE salary > 80000 AND department IN ('Sales', 'HR')
SELECT count(*) FROM employees WHERE active AND years_experience > 10
SELECT count(*) FILTER (WHERE active) AS active, count(*) FILTER (WHERE NOT active) AS inactive FROM employees
SELECT round(avg(salary)) FROM employees
SELECT department, count(*) AS n, avg(salary)::INT AS mean FROM employees GROUP BY department ORDER BY n DESC, department
SELECT department, count(*) FROM employees GROUP BY department HAVING count(*) > 3
SELECT name FROM employees ORDER BY salary DESC LIMIT 1
SELECT name FROM employees ORDER BY id DESC LIMIT 1 OFFSET 2
SELECT max(salary) - min(salary) AS spread, stddev_samp(salary) FROM employees
SELECT name, salary FROM employees WHERE salary > (SELECT avg(salary) FROM employees)
SELECT department, arg_max(name, salary) AS best, max(salary) FROM employees GROUP BY 1
SELECT count(DISTINCT department) FROM employees
SELECT split_part(email, '@', 2) AS domain, count(*) FROM employees GROUP BY ALL ORDER BY ALL
SELECT * FROM employees WHERE email LIKE '%@example.com' AND NOT active
SELECT * FROM employees WHERE years_experience BETWEEN 5 AND 10 ORDER BY years_experience, name
SELECT sum(salary) AS total, sum(salary) FILTER (WHERE active) AS paid FROM employees
SELECT bool_and(active), bool_or(active), any_value(department) FROM employees
SELECT quantile_cont(salary, [0.25, 0.5, 0.75]) FROM employees
SELECT quantile_disc(salary, 0.9) FROM employees
SELECT name FROM employees WHERE department NOT IN ('Sales') AND salary >= 50000 AND salary <> 60000
SELECT name FROM employees WHERE regexp_matches(name, '^Employee [0-4]$')
SELECT name FROM employees WHERE (department, active) IN (('Sales', true), ('HR', false))
SELECT total FROM orders WHERE order_id = 'ORD-0001'
SELECT customer_name, customer_email FROM orders WHERE order_id = 'ORD-0004'
SELECT count(*) FROM orders WHERE status = 'pending' AND total > 300
SELECT round(sum(total), 2) AS revenue, round(avg(total), 2) AS mean FROM orders
SELECT status, count(*), sum(total) FROM orders GROUP BY status ORDER BY 3 DESC
SELECT order_date, sum(total) OVER (ORDER BY order_date) AS running FROM orders
SELECT o.order_id, count(*) AS items FROM orders o JOIN items i ON i.parent_orders = o._id GROUP BY o.order_id HAVING count(*) >= 2
SELECT count(*) FROM orders o WHERE total > 300 AND (SELECT count(*) FROM items i WHERE i.parent_orders = o._id) >= 2
SELECT i.sku, sum(i.quantity * i.price) AS value FROM items i GROUP BY i.sku ORDER BY value DESC LIMIT 5
SELECT o.status, i.name, sum(i.quantity) FROM orders o JOIN items i ON o._id = i.parent_orders GROUP BY ALL ORDER BY ALL
SELECT o.order_id FROM orders o LEFT JOIN items i ON i.parent_orders = o._id WHERE i.sku IS NULL
SELECT * FROM orders WHERE order_date >= DATE '2025-01-05' AND order_date < DATE '2025-02-01'
SELECT month(order_date) AS m, count(*) FROM orders GROUP BY m ORDER BY m
SELECT order_id, total, rank() OVER (ORDER BY total DESC) AS place FROM orders QUALIFY place <= 3
SELECT order_id, total, total / sum(total) OVER () AS share FROM orders ORDER BY share DESC
SELECT order_id, sum(quantity * price) AS computed, any_value(total) AS told FROM orders JOIN items ON parent_orders = orders._id GROUP BY 1 HAVING abs(computed - told) > 0.01
SELECT views FROM analytics WHERE date = '2025-01-13'
SELECT sum(views), sum(conversions), round(sum(revenue), 2) FROM analytics
SELECT count(*) FROM analytics WHERE views > 600 AND conversions > 15
SELECT count(*) FROM analytics WHERE revenue > 1000 AND bounce_rate < 0.5
SELECT round(avg(bounce_rate), 2) FROM analytics
SELECT date, views - lag(views) OVER (ORDER BY date) AS change FROM analytics ORDER BY abs(change) DESC NULLS LAST LIMIT 3
SELECT date, avg(views) OVER (ORDER BY date ROWS 6 PRECEDING) AS week FROM analytics
SELECT date_trunc('week', date) AS week, sum(revenue) FROM analytics GROUP BY week ORDER BY week
SELECT dayname(date) AS day, avg(views) FROM analytics GROUP BY day ORDER BY 2 DESC
SELECT corr(views, revenue), covar_pop(views, clicks), regr_r2(revenue, views) FROM analytics
SELECT date FROM analytics WHERE views = (SELECT max(views) FROM analytics)
SELECT clicks * 100.0 / nullif(views, 0) AS rate FROM analytics ORDER BY date LIMIT 5
SELECT stars, forks, watchers FROM repositories WHERE repo = 'org1/repo1'
SELECT count(*) FROM repositories WHERE stars > 1000 AND forks > 100
SELECT default_branch, count(*) FROM repositories GROUP BY 1
SELECT split_part(repo, '/', 1) AS owner, sum(stars) FROM repositories GROUP BY owner ORDER BY 2 DESC LIMIT 5
SELECT repo FROM repositories WHERE description ILIKE '%data%' ORDER BY stars DESC
SELECT repo, round(stars / forks, 1) AS ratio FROM repositories WHERE forks > 0 ORDER BY ratio DESC LIMIT 3
SELECT date_diff('day', created_at, updated_at) AS days FROM repositories ORDER BY days LIMIT 3
SELECT level FROM events WHERE timestamp = '2025-05-26T00:03:00Z'
SELECT level, count(*) FROM events GROUP BY level
SELECT endpoint, avg(response_time), max(response_time) FROM events GROUP BY endpoint ORDER BY 2 DESC
SELECT count(*) FROM events WHERE status_code >= 400
SELECT count(*) FROM events WHERE status_code BETWEEN 200 AND 299 AND endpoint = '/api/users'
SELECT count(*) FROM events WHERE error_retryable
SELECT error_message, count(*) FROM events WHERE error_message IS NOT NULL GROUP BY 1
SELECT endpoint, count(*) FILTER (WHERE status_code >= 500) / count(*)::DOUBLE AS share FROM events GROUP BY 1 ORDER BY share DESC
SELECT status_code // 100 AS class, count(*) FROM events GROUP BY class ORDER BY class
SELECT user_id FROM events GROUP BY user_id HAVING count(DISTINCT endpoint) > 1
SELECT hour(timestamp::TIMESTAMP) AS h, count(*) FROM events GROUP BY h
SELECT time_bucket(INTERVAL '5 minutes', timestamp::TIMESTAMP) AS t, count(*) FROM events GROUP BY t ORDER BY t
SELECT regexp_extract(endpoint, '/api/(\w+)', 1) AS resource, count(*) FROM events GROUP BY 1
SELECT country, count(*) AS n FROM contacts GROUP BY country ORDER BY n DESC, country LIMIT 3
SELECT name, age FROM contacts WHERE plan_name = 'pro' AND age > 30
SELECT plan_name, max(plan_price) FROM contacts GROUP BY plan_name
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS part, count(*) FROM contacts GROUP BY part
SELECT _key FROM flags WHERE enabled AND rollout > 50
SELECT owner, count(*) FROM flags WHERE NOT enabled GROUP BY owner
SELECT count(*) FROM flags WHERE updated_at > '2025-03-10'
SELECT _key, rollout FROM flags ORDER BY rollout DESC, _key LIMIT 5
SELECT column_name FROM (DESCRIBE employees)
SELECT column_name, "null_percentage" FROM (SUMMARIZE employees)
DESCRIBE orders
SUMMARIZE analytics
SUMMARIZE SELECT views, clicks FROM analytics
FROM employees
FROM employees LIMIT 3
FROM employees SELECT name, salary WHERE active ORDER BY salary DESC
FROM employees SELECT count(*)
FROM orders o JOIN items i ON i.parent_orders = o._id SELECT o.order_id, i.sku
FROM (FROM events SELECT endpoint, count(*) AS n GROUP BY ALL) WHERE n > 2
FROM analytics SELECT avg(COLUMNS(* EXCLUDE (date)))
## windows
SELECT name, row_number() OVER () FROM employees
SELECT name, dense_rank() OVER (PARTITION BY department ORDER BY salary DESC) FROM employees
SELECT name, percent_rank() OVER (ORDER BY salary), cume_dist() OVER (ORDER BY salary) FROM employees
SELECT name, ntile(4) OVER (ORDER BY salary) AS quartile FROM employees
SELECT name, first_value(name) OVER w, last_value(name) OVER w, nth_value(name, 2) OVER w FROM employees WINDOW w AS (PARTITION BY department ORDER BY salary ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
SELECT date, lead(views, 7) OVER (ORDER BY date) - views FROM analytics
SELECT date, lag(views IGNORE NULLS) OVER (ORDER BY date) FROM analytics
SELECT date, sum(views) OVER (ORDER BY date RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND INTERVAL 3 DAYS FOLLOWING) FROM analytics
SELECT date, max(views) OVER (ORDER BY date ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) FROM analytics
SELECT date, avg(views) OVER (ORDER BY date ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING EXCLUDE CURRENT ROW) FROM analytics
SELECT date, sum(views) OVER (ORDER BY date GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM analytics
SELECT service, time, duration_ms - avg(duration_ms) OVER (PARTITION BY service) AS off FROM spans
SELECT service, count(*) FILTER (WHERE status = 'error') OVER (PARTITION BY service ORDER BY time) FROM spans
SELECT date, median(views) OVER (ORDER BY date ROWS 10 PRECEDING) FROM analytics
SELECT date, quantile_cont(views, 0.9) OVER (ORDER BY date ROWS 10 PRECEDING) FROM analytics
SELECT date, list(views) OVER (ORDER BY date ROWS 2 PRECEDING) FROM analytics
SELECT date, string_agg(views, '-') OVER (ORDER BY date ROWS 2 PRECEDING) FROM analytics
SELECT date, arg_max(date, views) OVER (ORDER BY date ROWS 5 PRECEDING) FROM analytics
SELECT department, sum(count(*)) OVER () FROM employees GROUP BY department
SELECT date, views, (views - avg(views) OVER w) / nullif(stddev(views) OVER w, 0) AS z FROM analytics WINDOW w AS (ORDER BY date ROWS BETWEEN 14 PRECEDING AND 1 PRECEDING) QUALIFY abs(z) > 2
SELECT service, time, sum(CASE WHEN gap > INTERVAL 5 SECOND THEN 1 ELSE 0 END) OVER (PARTITION BY service ORDER BY time) AS burst FROM (SELECT service, time::TIMESTAMP AS time, time::TIMESTAMP - lag(time::TIMESTAMP) OVER (PARTITION BY service ORDER BY time) AS gap FROM spans)
SELECT * FROM employees QUALIFY row_number() OVER (PARTITION BY department ORDER BY salary DESC) = 1
SELECT service, max(duration_ms) OVER (PARTITION BY service ORDER BY duration_ms DESC, code ASC NULLS FIRST) FROM spans
SELECT fill(views) OVER (ORDER BY date) FROM analytics
## times
SELECT DATE '2024-02-29' + INTERVAL 1 YEAR, TIMESTAMP '2024-01-01 10:00:00' - INTERVAL '90 minutes'
SELECT date_part('year', date), date_part(['month', 'day'], date) FROM analytics
SELECT extract(epoch FROM time), extract(dow FROM time), extract(week FROM time) FROM spans
SELECT year(date), quarter(date), month(date), day(date), isodow(date), dayofyear(date) FROM analytics
SELECT strftime(date, '%Y-%m'), strftime(date, '%A %d %B') FROM analytics
SELECT strptime('2024-05-06 07:08', '%Y-%m-%d %H:%M'), try_strptime('x', '%Y')
SELECT time_bucket(INTERVAL '1 hour', time::TIMESTAMP, TIMESTAMP '2024-01-01 00:30:00') FROM spans
SELECT time_bucket(INTERVAL '10 seconds', time::TIMESTAMP) AS t, service, avg(duration_ms) FROM spans GROUP BY ALL ORDER BY ALL
SELECT date_trunc('hour', time), date_trunc('day', time::TIMESTAMP) FROM spans
SELECT date_diff('hour', TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-02'), date_sub('month', DATE '2024-01-31', DATE '2024-03-01')
SELECT age(TIMESTAMP '2024-05-01', TIMESTAMP '2024-01-15')
SELECT epoch(time::TIMESTAMP), epoch_ms(time::TIMESTAMP), epoch_us(time::TIMESTAMP), epoch_ns(time) FROM spans
SELECT make_date(2024, 5, 6), make_time(7, 8, 9.5), make_timestamp(2024, 5, 6, 7, 8, 9.5), make_timestamp(1700000000000000)
SELECT to_timestamp(1700000000), epoch_ms(1700000000000), make_timestamp_ns(1700000000000000000)
SELECT last_day(DATE '2024-02-01'), monthname(DATE '2024-02-01'), weekofyear(DATE '2024-02-01'), yearweek(DATE '2024-02-01')
SELECT to_days(3), to_hours(2), to_minutes(5), to_seconds(1.5), to_milliseconds(7), to_months(2)
SELECT now() > TIMESTAMPTZ '2020-01-01', current_date > DATE '2020-01-01', today() = current_date
SELECT INTERVAL 1 DAY + INTERVAL 2 HOURS, INTERVAL '1 month' > INTERVAL '2 weeks'
SELECT time AT TIME ZONE 'UTC' FROM spans LIMIT 1
SELECT timezone('UTC', TIMESTAMP '2024-01-01 00:00:00')
SELECT min(time), max(time), max(time) - min(time) FROM spans
SELECT time FROM spans WHERE time BETWEEN '2024-01-01 00:00:05' AND '2024-01-01 00:00:10'
SELECT * FROM spans WHERE time >= TIMESTAMP '2024-01-01' AND time < TIMESTAMP '2024-01-01' + INTERVAL 10 SECOND
SELECT '2024-01-01T10:00:00Z'::TIMESTAMPTZ, '2024-01-01 10:00:00+02'::TIMESTAMPTZ::TIMESTAMP
SELECT CAST('2024-05-06' AS DATE), '12:34:56'::TIME, TRY_CAST('nope' AS TIMESTAMP)
SELECT generate_series(DATE '2024-01-01', DATE '2024-01-05', INTERVAL 1 DAY)
SELECT t::DATE FROM generate_series(DATE '2024-01-01', DATE '2024-01-05', INTERVAL 1 DAY) s(t)
SELECT t, count(s.span_id) FROM generate_series(TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-01 00:00:40', INTERVAL 10 SECOND) g(t) LEFT JOIN spans s ON s.time >= t AND s.time < t + INTERVAL 10 SECOND GROUP BY t ORDER BY t
SELECT range(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-02', INTERVAL 6 HOURS)
SELECT greatest(min(time), TIMESTAMP_NS '2024-01-01 00:00:10') FROM spans
SELECT datepart('minute', time), datediff('second', time, time + INTERVAL 1 MINUTE), datetrunc('minute', time) FROM spans
SELECT century(DATE '2024-01-01'), decade(DATE '2024-01-01'), era(DATE '2024-01-01'), julian(DATE '2024-01-01')
SELECT normalized_interval(INTERVAL '60 days'), days_in_month(DATE '2024-02-01')
## texts
SELECT upper(name), lower(name), length(name), reverse(name), initial FROM (SELECT name, left(name, 1) AS initial FROM employees)
SELECT trim('  x '), ltrim('xxa', 'x'), rtrim('axx', 'x'), replace('a-b', '-', '+'), translate('abc', 'ab', 'xy')
SELECT 'a' || 'b', concat('a', 1, NULL), concat_ws(',', 'a', 'b'), repeat('=', 10)
SELECT substring('hello', 2, 3), substring('hello' FROM 2 FOR 3), 'hello'[2:4], right('hello', 2), left('hello', -1)
SELECT position('l' IN 'hello'), strpos('hello', 'l'), instr('hello', 'l'), contains('hello', 'ell')
SELECT starts_with('hello', 'he'), ends_with('hello', 'lo'), prefix('hello', 'he'), suffix('hello', 'lo'), 'hello' ^@ 'he'
SELECT string_split('a,b,c', ','), str_split('a b', ' '), split('a-b', '-'), string_to_array('a b', ' ')
SELECT regexp_extract('x=12 y=7', 'y=(\d+)', 1)::INT, regexp_extract('x=12 y=7', 'x=(\d+) y=(\d+)', ['x', 'y'])
SELECT regexp_extract_all('a1b22', '\d+'), regexp_split_to_array('a1b2', '\d'), regexp_full_match('abc', '[a-c]+')
SELECT regexp_replace(body, '[0-9]+', '#', 'g') AS template, count(*) FROM logs GROUP BY template ORDER BY 2 DESC
SELECT regexp_split_to_table('a b c', ' ')
SELECT name FROM employees WHERE name LIKE 'Employee _' AND name NOT LIKE '%9' AND name SIMILAR TO 'Employee [0-9]'
SELECT name FROM employees WHERE name GLOB 'Employee*'
SELECT body FROM logs WHERE body !~~ '%x%' AND body NOT ILIKE 'y%'
SELECT '50%' LIKE '50\%' ESCAPE '\'
SELECT lpad('7', 3, '0'), rpad('7', 3, '.'), printf('%05d|%-6s|%.3f', 42, 'ab', 1.5), format('{} {:>6} {:.2f}', 'a', 'b', 1.239)
SELECT format_bytes(1234567), formatReadableDecimalSize(1234567), bar(5, 0, 10, 20)
SELECT md5('x'), sha1('x'), sha256('x'), hash('x') = hash('x'), base64('x'::BLOB), to_base64('x'::BLOB), from_base64('eA==')::VARCHAR
SELECT hex('x'), unhex('78')::VARCHAR, bin(5), to_base(255, 16), ascii('a'), chr(97), unicode('a'), ord('a')
SELECT levenshtein('kitten', 'sitting'), damerau_levenshtein('ab', 'ba'), jaro_winkler_similarity('abc', 'abd'), jaccard('ab', 'bc'), hamming('abc', 'abd')
SELECT strip_accents('é'), nfc_normalize('é'), length_grapheme('é'), url_encode('a b'), url_decode('a%20b')
SELECT string_agg(name, ', ' ORDER BY name) FROM employees
SELECT group_concat(name), listagg(name, ';') FROM employees
SELECT parse_path('/a/b.txt'), parse_filename('/a/b.txt'), parse_dirname('/a/b.txt')
SELECT 'straße' COLLATE NOCASE = 'STRASSE', 'a' COLLATE NOCASE < 'B'
SELECT name FROM employees ORDER BY name COLLATE NOCASE DESC
SELECT E'a\tb\n', 'it''s', $$quoted 'text'$$, $q$a $$ b$q$
SELECT 'ünïcödé 日本語 🚀', length('🚀'), '日本'.length()
SELECT 'abc'.upper().reverse(), body.split(' ')[1] FROM logs
SELECT bit_length('abc'), octet_length('abc'::BLOB), strlen('é'), char_length('é')
## numbers
SELECT 7 // 2, 7 / 2, 7 % 2, -7 // 2, 2 ** 10, 2 ^ 3, 1e3, 0x1F, 1_000_000
SELECT round(2.567, 2), ceil(2.1), floor(2.9), trunc(2.9), round(1234, -2), abs(-3), sign(-3)
SELECT sqrt(2), cbrt(27), exp(1), ln(10), log(100), log2(8), log10(1000), pow(2, 3), pi()
SELECT sin(1), cos(1), tan(1), asin(0.5), acos(0.5), atan(1), atan2(1, 2), degrees(pi()), radians(180)
SELECT greatest(1, 5, 3), least(1, 5, 3), gcd(12, 18), lcm(4, 6), factorial(5), even(2.1), bit_count(7)
SELECT 5 & 3, 5 | 3, xor(5, 3), ~5, 1 << 4, 16 >> 2
SELECT isnan('nan'::DOUBLE), isinf('inf'::DOUBLE), isfinite(1.5), nextafter(1.0::DOUBLE, 2.0::DOUBLE)
SELECT sum(duration_ms), avg(duration_ms), min(duration_ms), max(duration_ms), product(1), geomean(duration_ms + 1) FROM spans
SELECT stddev(duration_ms), stddev_pop(duration_ms), var_samp(duration_ms), var_pop(duration_ms), variance(duration_ms), sem(duration_ms) FROM spans
SELECT skewness(duration_ms), kurtosis(duration_ms), entropy(service), mode(service), mad(duration_ms) FROM spans
SELECT approx_quantile(duration_ms, 0.99), reservoir_quantile(duration_ms, 0.5), approx_count_distinct(trace_id), approx_top_k(service, 2) FROM spans
SELECT regr_slope(duration_ms, code), regr_intercept(duration_ms, code), regr_count(duration_ms, code), regr_avgx(duration_ms, code) FROM spans
SELECT histogram(code), histogram(duration_ms, [10, 20, 50]) FROM spans
SELECT bit_and(code), bit_or(code), bit_xor(code), count_if(code > 200), countif(code = 200) FROM spans
SELECT min(duration_ms, 3), max(duration_ms, 3), arg_min(name, duration_ms, 2) FROM spans
SELECT first(name), last(name), any_value(name), first(name ORDER BY duration_ms DESC) FROM spans
SELECT fsum(duration_ms), favg(duration_ms), kahan_sum(duration_ms) FROM spans
SELECT weighted_avg(duration_ms, code), wavg(duration_ms, code) FROM spans
SELECT equi_width_bins(0, 10, 2, true), width FROM (SELECT 1 AS width)
SELECT 1::TINYINT + 1::HUGEINT, 1.5::DECIMAL(4, 2), '7'::UBIGINT, 3.7::INT, true::INT
SELECT TRY_CAST('x' AS INT), TRY(1 / 0), 1 / 0, 5 % 3
SELECT avg(code)::DECIMAL(10, 2), sum(code)::BIGINT FROM spans
SELECT random() BETWEEN 0 AND 1
SELECT lttb(epoch_ms(date::TIMESTAMP)::DOUBLE, views::DOUBLE, 5) FROM analytics
## lists, structs, maps
SELECT [1, 2, 3], list_value(1, 2), array_value(1, 2), [1, 2, 3][2], [1, 2, 3][-1], [1, 2, 3][2:], [1, 2, 3, 4][1:4:2]
SELECT list_sum([1, 2]), list_avg([1, 2]), list_min([1, 2]), list_max([1, 2]), list_count([1, NULL]), list_median([1, 2, 3])
SELECT list_aggregate([1, 2, 3], 'stddev'), list_aggregate(['a', 'b'], 'string_agg', '|'), list_aggr([1, 2], 'sum')
SELECT list_contains([1, 2], 1), list_has_any([1], [1, 2]), list_has_all([1, 2], [1]), list_position([1, 2], 2), [1, 2] && [2], [1, 2] @> [1]
SELECT list_concat([1], [2]), [1] || [2], list_append([1], 2), list_prepend(0, [1]), list_reverse([1, 2]), list_resize([1], 3, 0)
SELECT list_sort([3, 1, 2]), list_sort([3, 1, NULL], 'DESC', 'NULLS LAST'), list_reverse_sort([1, 2]), list_grade_up([3, 1])
SELECT list_distinct([1, 1, 2]), list_unique([1, 1, 2]), list_zip([1, 2], ['a', 'b']), flatten([[1], [2, 3]])
SELECT list_transform([1, 2, 3], lambda x: x * 2), list_filter([1, 2, 3], lambda x: x > 1), list_reduce([1, 2, 3], lambda a, b: a + b)
SELECT list_transform([1, 2, 3], lambda x, i: x * i), [x + 1 FOR x IN [1, 2, 3]], [x FOR x IN [1, 2, 3] IF x % 2 = 1]
SELECT apply([1, 2], lambda x: x + 1), filter([1, 2], lambda x: x > 1), reduce([1, 2], lambda a, b: a + b), array_transform([1], lambda x: -x)
SELECT list_slice([1, 2, 3], 1, 2), list_select([1, 2, 3], [1, 3]), list_where([1, 2], [true, false]), list_intersect([1, 2], [2, 3])
SELECT range(5), range(1, 5), range(0, 10, 2), generate_series(1, 3), generate_subscripts([5, 6], 1)
SELECT unnest([1, 2, 3]) AS x, unnest(['a', 'b', 'c']) AS y
SELECT unnest([{'a': 1, 'b': 2}, {'a': 3, 'b': 4}], recursive := true)
SELECT unnest({'a': 1, 'b': {'c': 2}}), unnest([[1, 2], [3]], max_depth := 2)
SELECT service, list(name ORDER BY time) AS names, array_agg(DISTINCT code) FROM spans GROUP BY service
SELECT service, list(duration_ms) AS l, list_max(l), len(l), l[1] FROM spans GROUP BY service
SELECT s.x FROM (SELECT unnest(list(code)) AS x FROM spans) s
SELECT x FROM unnest([1, 2, 3]) AS t(x) WHERE x > 1
SELECT x, ordinality FROM unnest(['a', 'b']) WITH ORDINALITY AS t(x, ordinality)
SELECT {'a': 1, 'b': 'x'}, struct_pack(a := 1, b := 'x'), row(1, 'x'), {'a': {'b': 2}}.a.b, {'a': 1}['a']
SELECT struct_extract({'a': 1}, 'a'), struct_insert({'a': 1}, b := 2), struct_keys({'a': 1}), struct_concat({'a': 1}, {'b': 2})
SELECT s.a, s.* FROM (SELECT {'a': 1, 'b': 2} AS s)
SELECT map {'a': 1, 'b': 2}, map(['a'], [1]), map {'a': 1}['a'], map_keys(map {'a': 1}), map_values(map {'a': 1}), cardinality(map {'a': 1})
SELECT map_from_entries([('a', 1), ('b', 2)]), map_entries(map {'a': 1}), map_concat(map {'a': 1}, map {'b': 2}), map_extract(map {'a': 1}, 'a'), element_at(map {'a': 1}, 'a'), map_contains(map {'a': 1}, 'a')
SELECT e.key, e.value FROM (SELECT unnest(map_entries(histogram(service))) AS e FROM spans)
SELECT array_length([1, 2]), len([1, 2]), length([1, 2]), array_to_string([1, 2], ','), list_string_agg(['a', 'b'])
SELECT array_distance([1, 2]::FLOAT[2], [2, 3]::FLOAT[2]), array_inner_product([1, 2]::FLOAT[2], [2, 3]::FLOAT[2]), list_cosine_similarity([1.0, 2.0], [2.0, 3.0])
SELECT list_histogram([1, 1, 2]), list_mode([1, 1, 2]), list_entropy([1, 2]), list_product([1, 2]), list_any_value([NULL, 1]), list_first([1, 2]), list_last([1, 2])
SELECT array_slice([1, 2, 3], 2, NULL), array_pop_back([1, 2]), array_push_back([1], 2), array_cat([1], [2]), array_has([1], 1), array_sort([2, 1])
SELECT (1, 2) = (1, 2), [1, 2] < [1, 3], {'a': 1} = {'a': 1}, 1 = ANY([1, 2]), 1 < ALL([2, 3]), 2 IN [1, 2]
SELECT union_value(k := 1), union_tag(union_value(k := 1)), union_extract(union_value(k := 1), 'k')
SELECT enum_range(NULL::ENUM('a', 'b')), enum_code('b'::ENUM('a', 'b')), 'a'::ENUM('a', 'b')
SELECT typeof([1]), pg_typeof(1), typeof({'a': 1})
## JSON
SELECT attributes->>'pool', attributes->'n', attributes->>'$.pool', json_extract(attributes, '$.n'), json_extract_string(attributes, ['$.pool', '$.n']) FROM logs
SELECT (attributes->>'n')::INT + 1 FROM logs WHERE attributes->>'pool' = 'db'
SELECT json_type(attributes), json_keys(attributes), json_valid('{}'), json_array_length('[1, 2]'), json_structure(attributes) FROM logs
SELECT json_exists(attributes, '$.pool'), json_contains('[1, 2]', '1'), json_value(attributes, '$.n') FROM logs
SELECT '{"a": [1, {"b": 2}]}'::JSON->'a'->1->>'b', '{"a": [1, 2]}'::JSON->>'$.a[*]', json('{"a": 1}')
SELECT j.a FROM (SELECT from_json('{"a": 1}', '{"a": "INTEGER"}') AS j)
SELECT json_transform(attributes, '{"pool": "VARCHAR", "n": "INTEGER"}').n FROM logs
SELECT to_json({'a': 1}), json_object('a', 1), json_array(1, 'x'), json_quote('x'), row_to_json({'a': 1}), array_to_json([1])
SELECT json_group_array(name), json_group_object(span_id, code) FROM spans
SELECT json_merge_patch('{"a": 1}', '{"b": 2}'), json_pretty('{"a": 1}')
SELECT je.key, je.value, je.type FROM logs, json_each(attributes) AS je
SELECT jt.fullkey, jt.atom FROM json_tree('{"a": {"b": 1}}') AS jt
SELECT unnest(json_keys(attributes)) AS k, count(*) FROM logs GROUP BY k
SELECT unnest(from_json('[1, 2]', '["INTEGER"]')) AS x
SELECT attributes.pool FROM logs
SELECT attributes['pool'] FROM logs
SELECT json_extract_path_text(attributes, 'pool'), (attributes->'$.missing') IS NULL FROM logs
SELECT CAST('[1, 2]' AS JSON)::INT[], '{"a": 1}'::JSON::STRUCT(a INT)
## joins
SELECT * FROM spans JOIN logs USING (trace_id, service)
SELECT * FROM spans NATURAL JOIN logs
SELECT s.service, l.body FROM spans s INNER JOIN logs l ON s.trace_id = l.trace_id AND s.time <= l.time WHERE s.code = 201
SELECT * FROM spans s RIGHT JOIN logs l ON s.span_id = l.trace_id
SELECT * FROM spans s FULL OUTER JOIN logs l ON s.span_id = l.trace_id
SELECT * FROM spans s CROSS JOIN "odd name" o
SELECT a.name, b.name FROM employees a, employees b WHERE a.department = b.department AND a.id < b.id
SELECT s.*, m.value FROM spans s ASOF LEFT JOIN metrics m ON s.service = m.service AND s.time >= m.time
SELECT s.time, m.value FROM spans s ASOF JOIN metrics m USING (service, time)
SELECT * FROM spans s ASOF JOIN logs l ON s.service = l.service AND s.time > l.time ORDER BY s.time
SELECT * FROM spans POSITIONAL JOIN metrics
SELECT s.service FROM spans s SEMI JOIN logs USING (trace_id)
SELECT s.service FROM spans s ANTI JOIN logs l ON l.trace_id = s.span_id
SELECT s.service, top.name FROM (SELECT DISTINCT service FROM spans) s, LATERAL (SELECT name FROM spans i WHERE i.service = s.service ORDER BY duration_ms DESC LIMIT 1) top
SELECT s.service, x.n FROM spans s CROSS JOIN LATERAL (SELECT s.code + 1 AS n) x
SELECT c.service AS callee, p.service AS caller, count(*), avg(c.duration_ms) FROM spans c JOIN spans p ON p.span_id = c.parent_span_id AND p.trace_id = c.trace_id GROUP BY ALL
SELECT * FROM spans WHERE trace_id = ANY (SELECT trace_id FROM logs)
SELECT * FROM spans s WHERE EXISTS (SELECT 1 FROM logs l WHERE l.trace_id = s.trace_id AND l.severity = 'ERROR')
SELECT * FROM spans s WHERE duration_ms > ALL (SELECT value FROM metrics WHERE value < 5)
SELECT (SELECT count(*) FROM spans), (SELECT max(time) FROM logs)
SELECT * FROM (SELECT service, count(*) AS n FROM spans GROUP BY 1) a JOIN (SELECT service, count(*) AS m FROM logs GROUP BY 1) b USING (service)
SELECT * FROM spans s, items i, orders o WHERE i.parent_orders = o._id AND s.code = 201 LIMIT 5
## set operations and CTEs
SELECT service FROM spans UNION SELECT service FROM logs ORDER BY service
SELECT service FROM spans UNION ALL SELECT service FROM logs LIMIT 5
SELECT service FROM spans INTERSECT SELECT service FROM logs
SELECT service FROM spans INTERSECT ALL SELECT service FROM logs
SELECT service FROM spans EXCEPT SELECT 'a'
SELECT service, code FROM spans UNION BY NAME SELECT code, service FROM spans
(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1 DESC
VALUES (1, 'a'), (2, 'b') ORDER BY 1 DESC LIMIT 1
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(id, name)
TABLE spans ORDER BY time LIMIT 2
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS x FROM a), c AS (SELECT * FROM a UNION ALL SELECT * FROM b) SELECT sum(x) FROM c
WITH a AS NOT MATERIALIZED (SELECT * FROM spans) SELECT count(*) FROM a
WITH totals AS MATERIALIZED (SELECT service, sum(duration_ms) AS ms FROM spans GROUP BY 1) SELECT *, ms / (SELECT sum(ms) FROM totals) FROM totals
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT * FROM n
WITH RECURSIVE path(span_id, route) AS (SELECT span_id, service FROM spans WHERE parent_span_id IS NULL UNION ALL SELECT s.span_id, p.route || ' > ' || s.service FROM spans s JOIN path p ON s.parent_span_id = p.span_id) SELECT route, count(*) FROM path GROUP BY route ORDER BY 2 DESC
WITH RECURSIVE reach AS (SELECT 's39' AS id UNION SELECT parent_span_id FROM spans JOIN reach ON span_id = id WHERE parent_span_id IS NOT NULL) SELECT * FROM reach
WITH RECURSIVE fib AS (SELECT 1 AS a, 1 AS b, 1 AS n UNION ALL SELECT b, a + b, n + 1 FROM fib WHERE n < 20) SELECT max(a) FROM fib
SELECT * FROM (WITH x AS (SELECT 1 AS a) SELECT * FROM x)
WITH x AS (FROM spans SELECT service) FROM x SELECT DISTINCT service
WITH before AS (SELECT service, avg(duration_ms) AS ms FROM spans WHERE time < '2024-01-01 00:00:20' GROUP BY 1), after AS (SELECT service, avg(duration_ms) AS ms FROM spans WHERE time >= '2024-01-01 00:00:20' GROUP BY 1) SELECT service, after.ms / before.ms AS growth FROM before JOIN after USING (service) ORDER BY growth DESC
## pivots
PIVOT spans ON status USING count(*) GROUP BY service ORDER BY service
PIVOT spans ON status USING count(*) GROUP BY service ORDER BY service DESC NULLS LAST LIMIT 2 OFFSET 1
PIVOT spans ON status USING count(*) GROUP BY service LIMIT 2
PIVOT spans ON status USING avg(duration_ms) AS mean, count(*) AS n GROUP BY service
PIVOT spans ON status IN ('ok') USING avg(duration_ms) GROUP BY service ORDER BY ALL
PIVOT spans ON status, code USING count(*) GROUP BY service
PIVOT spans ON (code % 2) USING count(*)
PIVOT (SELECT service, status || '_' || code AS k FROM spans) ON k USING count(*) ORDER BY 1
PIVOT (FROM spans SELECT service, status, duration_ms ORDER BY time LIMIT 30) ON status USING max(duration_ms) GROUP BY service ORDER BY 2
PIVOT spans ON service USING first(name ORDER BY duration_ms DESC) GROUP BY status ORDER BY status
WITH e AS (SELECT * FROM spans WHERE code = 201) PIVOT e ON service USING count(*) GROUP BY status ORDER BY status
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) PIVOT n ON i USING count(*)
PIVOT_WIDER spans ON status USING count(*) GROUP BY service ORDER BY service
pivot spans on status using count(*) group by service order by service
FROM (PIVOT spans ON status USING count(*) GROUP BY service) SELECT service, ok ORDER BY ok DESC
SELECT a.service, ok - error FROM (PIVOT spans ON status USING count(*) GROUP BY service) a JOIN logs USING (service)
SELECT * FROM spans PIVOT (count(*) FOR status IN ('ok', 'error') GROUP BY service) ORDER BY service
UNPIVOT analytics ON views, clicks, conversions INTO NAME metric VALUE amount
UNPIVOT analytics ON views, clicks INTO NAME metric VALUE amount ORDER BY date, metric LIMIT 4
UNPIVOT analytics ON COLUMNS(* EXCLUDE (date)) INTO NAME metric VALUE amount
UNPIVOT (SELECT date, views, clicks FROM analytics) ON views, clicks INTO NAME metric VALUE amount ORDER BY ALL
PIVOT_LONGER analytics ON views, clicks INTO NAME metric VALUE amount
SELECT metric, sum(amount) FROM (UNPIVOT analytics ON views, clicks INTO NAME metric VALUE amount) GROUP BY metric
SELECT * FROM analytics UNPIVOT (amount FOR metric IN (views, clicks)) ORDER BY date LIMIT 3
SELECT * FROM analytics UNPIVOT INCLUDE NULLS (amount FOR metric IN (views, clicks))
## grouping and stars
SELECT department, active, count(*) FROM employees GROUP BY ROLLUP (department, active) ORDER BY ALL
SELECT department, active, count(*), grouping(department, active) FROM employees GROUP BY CUBE (department, active)
SELECT department, active, count(*) FROM employees GROUP BY GROUPING SETS ((department), (active), ())
SELECT department, grouping_id(department), count(*) FROM employees GROUP BY ROLLUP (department)
SELECT * EXCLUDE (email) FROM employees
SELECT * REPLACE (upper(name) AS name) FROM employees
SELECT * RENAME (name AS who) FROM employees
SELECT COLUMNS('.*_?id') FROM spans
SELECT COLUMNS(lambda c: c LIKE 'd%') FROM spans
SELECT min(COLUMNS(*)), max(COLUMNS(*)) FROM analytics
SELECT COLUMNS([x FOR x IN ['code', 'name']]) FROM spans
SELECT coalesce(*COLUMNS('name|service')) FROM spans
SELECT * LIKE '%id' FROM spans
SELECT e.* FROM employees e ORDER BY ALL DESC
SELECT name AS "full name", salary AS "select" FROM employees
SELECT service s, count(*) n FROM spans GROUP BY s ORDER BY n
SELECT salary / 12 AS monthly, monthly * 0.7 AS net FROM employees WHERE monthly > 5000
SELECT #1, #2 FROM (SELECT 1, 2)
SELECT ALL service FROM spans
SELECT DISTINCT ON (service, status) * FROM spans ORDER BY service, status, time DESC
SELECT service FROM spans GROUP BY 1 ORDER BY count(*) DESC
SELECT name FROM employees LIMIT (SELECT 2)
SELECT name FROM employees LIMIT 10% OFFSET 1
SELECT name FROM employees ORDER BY salary DESC NULLS LAST, name ASC FETCH FIRST 3 ROWS ONLY
SELECT * FROM spans USING SAMPLE 5
SELECT * FROM spans USING SAMPLE 20 PERCENT (bernoulli)
SELECT * FROM spans TABLESAMPLE reservoir(5 ROWS) REPEATABLE (42)
SELECT service FROM spans WHERE code IS NOT NULL AND (status IS DISTINCT FROM 'ok') AND (code = 201) IS TRUE
SELECT CASE status WHEN 'ok' THEN 1 ELSE 0 END, iif FROM (SELECT status, if(code > 200, 'x', 'y') AS iif FROM spans)
SELECT 1 WHERE EXISTS (FROM spans) AND NOT EXISTS (FROM spans WHERE code = 999)
SELECT count(*), count(code), count(DISTINCT (service, status)) FROM spans
SELECT sum(code) FILTER (status = 'ok') FROM spans
SELECT main.spans.service, spans.code FROM main.spans
## operators
SELECT * FROM detect_anomaly('analytics', 'views')
FROM detect_anomaly(metrics, value)
WITH m AS (SELECT date, views FROM analytics) SELECT * FROM detect_anomaly(m, views)
## diagnosing
SELECT service, count(*) AS calls, count(*) FILTER (WHERE status = 'error') AS errors, round(100.0 * errors / calls, 1) AS percent FROM spans GROUP BY service ORDER BY percent DESC
SELECT service, quantile_cont(duration_ms, 0.5) AS p50, quantile_cont(duration_ms, 0.95) AS p95, quantile_cont(duration_ms, 0.99) AS p99 FROM spans GROUP BY service
SELECT min(time) AS first_error FROM spans WHERE status = 'error'
SELECT service, min(time) FILTER (WHERE status = 'error') AS onset FROM spans GROUP BY service ORDER BY onset NULLS LAST
SELECT time_bucket(INTERVAL '10 seconds', time::TIMESTAMP) AS t, service, count(*) FILTER (WHERE status = 'error') / count(*) AS rate FROM spans GROUP BY ALL ORDER BY t, service
SELECT a.service, a.name, a.duration_ms FROM spans a WHERE a.trace_id = (SELECT trace_id FROM spans ORDER BY duration_ms DESC LIMIT 1) ORDER BY a.time
SELECT s.service, s.duration_ms - coalesce(sum(c.duration_ms), 0) AS self_ms FROM spans s LEFT JOIN spans c ON c.parent_span_id = s.span_id GROUP BY s.span_id, s.service, s.duration_ms ORDER BY self_ms DESC LIMIT 5
SELECT trace_id, count(*) AS spans, max(duration_ms) AS slowest, bool_or(status = 'error') AS failed FROM spans GROUP BY trace_id HAVING failed ORDER BY slowest DESC
SELECT trace_id, string_agg(service, ' > ' ORDER BY time) AS route FROM spans GROUP BY trace_id
SELECT service, severity, count(*) FROM logs GROUP BY ROLLUP (service, severity) ORDER BY ALL
SELECT body, count(*) AS n, min(time), max(time) FROM logs GROUP BY body ORDER BY n DESC LIMIT 10
SELECT service, body FROM logs WHERE body ILIKE '%timeout%' OR body ILIKE '%refused%'
SELECT * FROM logs WHERE contains(lower(body), 'timeout') AND time > (SELECT min(time) + INTERVAL 10 SECOND FROM logs)
SELECT regexp_extract(body, 'code=(\d+)', 1)::INT AS code, count(*) FROM logs GROUP BY code ORDER BY code
SELECT l.time, l.body, s.name FROM logs l ASOF JOIN spans s ON l.trace_id = s.trace_id AND l.time >= s.time ORDER BY l.time LIMIT 10
SELECT m.service, corr(m.value, s.duration_ms) FROM metrics m JOIN spans s ON m.service = s.service AND m.time = s.time GROUP BY m.service
SELECT service, max(value) AS peak, arg_max(time, value) AS at FROM metrics GROUP BY service ORDER BY peak DESC
SELECT service, time, value FROM (SELECT *, (value - median(value) OVER (PARTITION BY service)) / nullif(mad(value) OVER (PARTITION BY service), 0) AS score FROM metrics) WHERE abs(score) > 1
SELECT service, regr_slope(value, epoch(time::TIMESTAMP)) AS growth FROM metrics GROUP BY service
SELECT service, time, value - lag(value) OVER (PARTITION BY service ORDER BY time) AS step FROM metrics ORDER BY abs(step) DESC NULLS LAST LIMIT 5
SELECT service, max(time) - min(time) AS covered, count(*) AS points, (max(time) - min(time)) / count(*) AS apart FROM metrics GROUP BY service
SELECT time, time - lag(time) OVER (ORDER BY time) AS gap FROM metrics ORDER BY gap DESC NULLS LAST LIMIT 3
SELECT code, count(*) * 100 / sum(count(*)) OVER () AS percent FROM spans GROUP BY code
SELECT p.service AS caller, c.service AS callee, count(*) AS calls, avg(c.duration_ms) AS ms, sum((c.status = 'error')::INT) AS errors FROM spans c JOIN spans p ON c.parent_span_id = p.span_id GROUP BY ALL ORDER BY errors DESC
WITH calls AS (SELECT DISTINCT p.service AS a, c.service AS b FROM spans c JOIN spans p ON c.parent_span_id = p.span_id) SELECT a, list(b ORDER BY b) FROM calls GROUP BY a
WITH baseline AS (SELECT service, avg(duration_ms) AS m, stddev(duration_ms) AS s FROM spans WHERE time < TIMESTAMP '2024-01-01 00:00:20' GROUP BY service) SELECT x.service, count(*) FROM spans x JOIN baseline b USING (service) WHERE x.duration_ms > b.m + 3 * b.s GROUP BY 1
SELECT 'spans' AS source, count(*) FROM spans UNION ALL SELECT 'logs', count(*) FROM logs UNION ALL SELECT 'metrics', count(*) FROM metrics
SELECT service, list_distinct(list(name)) AS operations FROM spans GROUP BY service
SELECT service, approx_quantile(duration_ms, [0.5, 0.99]) AS q, q[2] / q[1] AS tail FROM spans GROUP BY service
SELECT attributes->>'pool' AS pool, count(*) FROM logs GROUP BY pool HAVING count(*) > 1
SELECT count(*) AS n FROM spans WHERE parent_span_id IS NOT NULL AND parent_span_id NOT IN (SELECT span_id FROM spans)
SELECT service, histogram(duration_ms // 10 * 10) FROM spans GROUP BY service
SELECT floor(duration_ms / 10) * 10 AS bucket, count(*), bar(count(*), 0, 20, 20) FROM spans GROUP BY bucket ORDER BY bucket
SELECT strftime(time_bucket(INTERVAL '1 minute', time::TIMESTAMP), '%H:%M') AS minute, max(duration_ms) FROM spans GROUP BY 1 ORDER BY 1
SELECT row_number() OVER (PARTITION BY service ORDER BY time) - 1 AS _row_id, service, epoch_ms(time::TIMESTAMP) AS x, value AS y FROM metrics
SELECT dense_rank() OVER (ORDER BY service) - 1 AS series_idx, row_number() OVER (PARTITION BY service ORDER BY time) - 1 AS _row_id, value FROM metrics ORDER BY 1, 2
SELECT strftime(date, '%Y-%m-%d') AS x, views AS y, 'views' AS series FROM analytics UNION ALL SELECT strftime(date, '%Y-%m-%d'), clicks, 'clicks' FROM analytics
SELECT json_object('name', service, 'data', list(value ORDER BY time)) FROM metrics GROUP BY service
## asked of a database
SELECT count(*) FROM employees
SELECT T1.name FROM employees AS T1 JOIN (SELECT department, max(salary) AS top FROM employees GROUP BY department) AS T2 ON T1.department = T2.department AND T1.salary = T2.top
SELECT department FROM employees GROUP BY department ORDER BY count(*) DESC LIMIT 1
SELECT name FROM employees WHERE id NOT IN (SELECT id FROM employees WHERE active)
SELECT avg(age), min(age), max(age) FROM contacts WHERE country = 'Country 1'
SELECT country FROM contacts WHERE age > 40 INTERSECT SELECT country FROM contacts WHERE age < 30
SELECT city, count(*) FROM contacts GROUP BY city HAVING count(*) >= 2 ORDER BY count(*) DESC, city
SELECT DISTINCT T1.country FROM contacts T1 JOIN contacts T2 ON T1.city = T2.city AND T1.name <> T2.name
SELECT name FROM repositories WHERE stars = (SELECT max(stars) FROM repositories)
SELECT count(*) FROM repositories WHERE strftime(created_at, '%Y-%m') = '2020-01'
SELECT CAST(sum(CASE WHEN status = 'shipped' THEN 1 ELSE 0 END) AS REAL) * 100 / count(*) FROM orders
SELECT o.customer_name, sum(i.quantity) AS bought FROM orders o LEFT JOIN items i ON i.parent_orders = o._id GROUP BY o._id, o.customer_name ORDER BY bought DESC NULLS LAST, o.customer_name LIMIT 5
SELECT substr(order_id, 5) AS number FROM orders WHERE total BETWEEN 100 AND 500 AND status IN ('pending', 'shipped')
SELECT max(total) - min(total) FROM orders WHERE order_date::VARCHAR LIKE '2025-01%'
SELECT strftime('%Y', order_date), count(*) FROM orders GROUP BY 1
SELECT name, CASE WHEN salary > 100000 THEN 'high' WHEN salary > 70000 THEN 'middle' ELSE 'low' END AS band FROM employees ORDER BY band, name
SELECT (SELECT count(*) FROM employees WHERE active) * 1.0 / (SELECT count(*) FROM employees)
SELECT name FROM employees WHERE salary < (SELECT avg(salary) FROM employees e WHERE e.department = employees.department)
SELECT e.department, count(*) FROM employees e GROUP BY e.department ORDER BY count(*) ASC LIMIT 1
SELECT name, length(name) AS n FROM contacts ORDER BY n DESC, name LIMIT 1
SELECT iif.x FROM (SELECT if(rollout > 50, 'wide', 'narrow') AS x FROM flags) iif
## lambdas with an arrow, and arrows into JSON
SELECT list_transform([1, 2], x -> x + 1), list_filter([1, 2], v -> v > 1 AND v < 3), apply([1], x -> x * 2)
SELECT list_transform([1, 2], (x, i) -> x * i), list_reduce([1, 2, 3], (a, b) -> a + b), reduce([1, 2], (a, b) -> a + b)
SELECT list_transform([[1], [2]], x -> list_transform(x, y -> y + 1)), list_transform(list(code), c -> c // 100) FROM spans
SELECT list_filter(list(attributes), a -> (a->>'pool') = 'db') FROM logs
SELECT attributes->'$.n', (attributes->'n')::INT + 1 FROM logs WHERE attributes->>'pool' = 'db'
## times in nanoseconds
SELECT epoch_ms(time), duration_ms FROM spans ORDER BY time
SELECT epoch_ms(min(time)), epoch_ms(max(time)), service FROM spans GROUP BY service
SELECT epoch_ms(date_trunc('minute', time)) AS t, count(*) FROM spans GROUP BY t ORDER BY t
SELECT epoch_ms(time_bucket(INTERVAL '1 minute', time)) AS t, avg(value) FROM metrics GROUP BY t ORDER BY t
SELECT epoch_ms(lag(time) OVER (ORDER BY time)), epoch_ms((SELECT max(time) FROM logs)) FROM spans
SELECT epoch_ms(1700000000000), epoch_ms(code), epoch_ms(DATE '2024-01-01'), epoch_ms(INTERVAL 1 HOUR), epoch_ms(time - TIMESTAMP '2024-01-01') FROM spans
SELECT now() - time, time > now() - INTERVAL 1 YEAR, date_diff('minute', time, now()), age(now(), time) FROM spans
SELECT current_timestamp - time, coalesce(time, now()), least(time, current_timestamp), get_current_timestamp() > time FROM spans
SELECT now()::DATE, date_trunc('day', now()), epoch_ms(now()), now() > TIMESTAMPTZ '2020-01-01 00:00:00+00', now()::TIMESTAMP - time FROM spans
SELECT date_trunc('hour', time), strftime(time, '%H:%M:%S.%n'), time_bucket(INTERVAL 1 MINUTE, time), extract(epoch FROM time), date_part('minute', time) FROM spans
SELECT time + INTERVAL 1 DAY, time - INTERVAL 1 DAY, age(time), age(time, TIMESTAMP '2020-01-01'), time::DATE, last_day(time), date_add(time, INTERVAL 1 DAY) FROM spans
SELECT time FROM spans WHERE time BETWEEN '2023-01-01' AND '2025-01-01T00:00:00Z' AND time > '2023-01-01T00:00:00Z' AND time::DATE = '2024-01-01'
SELECT generate_series(min(time), max(time), INTERVAL 1 MINUTE), range(min(time)::TIMESTAMP, max(time)::TIMESTAMP, INTERVAL 1 MINUTE) FROM spans
SELECT date_diff('ms', min(time), max(time)), max(time) - min(time), epoch(max(time) - min(time)) * 1000 FROM spans
## windows
SELECT mode(code) OVER (PARTITION BY service), mad(duration_ms) OVER () FROM spans
SELECT mad(duration_ms) OVER (ORDER BY time ROWS BETWEEN 30 PRECEDING AND CURRENT ROW) FROM spans
SELECT mode(code) OVER (ORDER BY time ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT ROW) FROM spans
SELECT histogram(code) OVER (PARTITION BY service ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM spans
SELECT median(duration_ms) OVER (ORDER BY time), list(name) OVER (PARTITION BY trace_id ORDER BY time), count(DISTINCT name) OVER (ORDER BY time) FROM spans
SELECT quantile_cont(duration_ms, 0.95) OVER (ORDER BY time RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING AND CURRENT ROW) FROM spans
SELECT avg(duration_ms) OVER (ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM spans
## functions that are seldom asked for
SELECT bitstring_agg(code), bitstring_agg(code, 200, 299) FROM spans
SELECT bitstring('101', 8), set_bit('101'::BIT, 1, 1), binom(5, 2), path_join('a', 'b'), assert_true(true)
SELECT gen_random_uuid(), uuid(), uuidv4(), uuidv7() FROM spans
SELECT cast_to_type('1', 2), create_sort_key(code, 'ASC NULLS LAST') FROM spans
SELECT variant_type(code::VARIANT), variant_normalize(code::VARIANT), variant_array_length([code]::VARIANT) FROM spans
SELECT variant_group_array(code) FROM spans
WITH "my e" AS (SELECT duration_ms AS v FROM spans) FROM DETECT_ANOMALY("my e", 'v')
WITH "e;-(" AS (SELECT duration_ms AS v FROM spans) SELECT * FROM DETECT_ANOMALY("e;-(", v)
