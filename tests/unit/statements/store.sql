CREATE TABLE spans AS
SELECT TIMESTAMP_NS '2024-01-01 00:00:00' + to_seconds(i) AS time, ['a', 'b', 'c'][i % 3 + 1] AS service,
       'op' || i % 5 AS name, i * 1.5::DOUBLE AS duration_ms, 200 + i % 2 AS code,
       ['ok', 'error'][i % 2 + 1] AS status, 't' || i // 4 AS trace_id, 's' || i AS span_id,
       CASE WHEN i % 4 > 0 THEN 's' || (i - 1) END AS parent_span_id
FROM range(40) r(i);
CREATE TABLE logs AS
SELECT time, service, trace_id, 'code=' || code || ' timeout' AS body, 'ERROR' AS severity,
       '{"pool": "db", "n": 1}'::JSON AS attributes
FROM spans;
CREATE TABLE metrics AS SELECT time, service, duration_ms AS value, code::DOUBLE AS code FROM spans;
CREATE TABLE "odd name" AS SELECT 1 AS x;
CREATE TABLE hidden AS SELECT 'secret' AS x;
CREATE TABLE employees AS
SELECT i AS id, 'Employee ' || i AS name, 'e' || i || '@example.com' AS email,
       ['Engineering', 'Sales', 'Marketing', 'HR', 'Operations'][i % 5 + 1] AS department,
       40000 + i * 7919 % 90000 AS salary, i * 7 % 25 AS years_experience, i % 6 > 0 AS active
FROM range(30) r(i);
CREATE TABLE orders AS
SELECT i AS _id, 'ORD-' || lpad(i::VARCHAR, 4, '0') AS order_id, 'Customer ' || i AS customer_name,
       'c' || i || '@example.com' AS customer_email, round(i * 97.31 % 900, 2) AS total,
       ['pending', 'shipped', 'delivered'][i % 3 + 1] AS status, DATE '2025-01-01' + i::INT AS order_date
FROM range(20) r(i);
CREATE TABLE items AS
SELECT o._id AS parent_orders, k AS _row_id, 'SKU-' || (o._id + k) % 7 AS sku, 'Item ' || k AS name, k + 1 AS quantity,
       9.5 * (k + 1) AS price
FROM orders o, range(3) r(k) WHERE k <= o._id % 3 AND o._id <> 5;
CREATE TABLE analytics AS
SELECT DATE '2025-01-01' + i::INT AS date, 500 + i * 37 % 400 AS views, 20 + i * 11 % 60 AS clicks,
       5 + i * 3 % 30 AS conversions, round(i * 613.7 % 5000, 2) AS revenue, round(0.3 + i % 5 / 10, 2) AS bounce_rate
FROM range(60) r(i);
CREATE TABLE repositories AS
SELECT i AS id, 'repo' || i AS name, 'org' || i % 4 || '/repo' || i AS repo, 'Tools for data ' || i AS description,
       i * 997 % 5000 AS stars, i * 131 % 700 AS forks, i AS watchers, ['main', 'master'][i % 2 + 1] AS default_branch,
       TIMESTAMP '2020-01-01' + to_days(i::INT) AS created_at, TIMESTAMP '2025-01-01' AS updated_at
FROM range(25) r(i);
CREATE TABLE events AS
SELECT strftime(TIMESTAMP '2025-05-26' + to_minutes(i), '%Y-%m-%dT%H:%M:%SZ') AS timestamp,
       ['info', 'warn', 'error'][i % 3 + 1] AS level, '/api/' || ['users', 'orders', 'products'][i % 3 + 1] AS endpoint,
       200 + i * 53 % 350 AS status_code, 100 + i * 71 % 900 AS response_time, i % 11 AS user_id,
       CASE WHEN i % 3 = 2 THEN 'Internal error' END AS error_message, CASE WHEN i % 3 = 2 THEN i % 2 = 0 END AS error_retryable
FROM range(45) r(i);
CREATE TABLE contacts AS
SELECT 'Contact ' || i AS name, 18 + i * 5 % 60 AS age, 'City ' || i % 9 AS city, 'Country ' || i % 4 AS country,
       ['free', 'starter', 'pro'][i % 3 + 1] AS plan_name, [0, 15, 40][i % 3 + 1] AS plan_price
FROM range(25) r(i);
CREATE TABLE flags AS
SELECT 'flag_' || i AS _key, i % 3 > 0 AS enabled, i * 13 % 100 AS rollout, 'Owner ' || i % 5 AS owner,
       strftime(DATE '2025-03-01' + i::INT, '%Y-%m-%d') AS updated_at
FROM range(20) r(i)
