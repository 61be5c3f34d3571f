-- compare: exact
-- modes: p1
-- about: CREATE TABLE AS SELECT makes the table from the query, with columns, keys and orders of its own, and refuses what does not fit
CREATE TABLE src (id INT NOT NULL, name STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|a|2024-01-01T00:00
+I|2|b|2024-01-01T00:01
');
CREATE TABLE c1 WITH ('connector'='changelog') AS SELECT id, name FROM src;
DESCRIBE c1;
SHOW CREATE TABLE c1;
CREATE TABLE c2 (extra INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='changelog') AS SELECT id, name FROM src;
DESCRIBE c2;
CREATE TABLE c3 (name, id) WITH ('connector'='changelog') AS SELECT id, name FROM src;
DESCRIBE c3;
CREATE TABLE c4 (name, id2) WITH ('connector'='changelog') AS SELECT id, name FROM src;
CREATE TABLE c5 (name) WITH ('connector'='changelog') AS SELECT id, name FROM src;
CREATE TABLE c6 (id BIGINT) WITH ('connector'='changelog') AS SELECT id, name FROM src;
DESCRIBE c6;
CREATE TABLE c7 (id STRING) WITH ('connector'='changelog') AS SELECT id, name FROM src;
CREATE TABLE c8 (must INT NOT NULL) WITH ('connector'='changelog') AS SELECT id, name FROM src;
CREATE TABLE c9 (doubled AS id * 2, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector'='changelog') AS SELECT id, ts FROM src;
DESCRIBE c9;
CREATE TABLE c10 WITH ('connector'='changelog') AS SELECT NULL AS n FROM src;
CREATE TABLE c11 WITH ('connector'='changelog') AS SELECT id, id FROM src;
CREATE TABLE c12 WITH ('connector'='changelog') AS SELECT id + 1, UPPER(name) FROM src;
DESCRIBE c12;
CREATE TABLE c1 WITH ('connector'='changelog') AS SELECT id FROM src;
CREATE TABLE IF NOT EXISTS c1 WITH ('connector'='changelog') AS SELECT id FROM src;
CREATE TEMPORARY TABLE c13 WITH ('connector'='changelog') AS SELECT id FROM src;
CREATE TABLE c14 AS SELECT id FROM src;
SHOW TABLES;
CREATE TABLE c15 WITH ('connector'='no-such') AS SELECT id FROM src;
CREATE TABLE c16 WITH ('connector'='changelog', 'changelog-mode'='I') AS SELECT name, COUNT(*) AS n FROM src GROUP BY name;
SHOW TABLES;
CREATE TABLE c17 PARTITIONED BY (name) WITH ('connector'='blackhole') AS SELECT id, name FROM src;
SHOW CREATE TABLE c17;
CREATE TABLE c18 COMMENT 'made' WITH ('connector'='blackhole') AS SELECT 'abc' AS s, 1.50 AS d, TRUE AS b, DATE '2024-01-01' AS dt, ARRAY[1,2] AS ar, MAP['a', 1] AS mp, ROW(1, 'x') AS rw;
DESCRIBE c18;
CREATE TABLE c19 DISTRIBUTED BY HASH (id) INTO 4 BUCKETS WITH ('connector'='blackhole') AS SELECT id FROM src;
SHOW CREATE TABLE c19;
CREATE TABLE c20 (meta STRING METADATA) WITH ('connector'='changelog') AS SELECT id FROM src;
