-- compare: exact
-- modes: p1
-- about: views over tables that cannot be read are refused where Flink refuses them
CREATE TABLE noconn (a INT, b STRING);
CREATE VIEW v1 AS SELECT a FROM noconn;
SELECT * FROM v1;
DESCRIBE v1;
CREATE TABLE unknown_conn (a INT, b STRING) WITH ('connector'='no-such');
CREATE VIEW v2 AS SELECT a, b FROM unknown_conn;
SELECT * FROM v2;
CREATE TABLE badopt (a INT) WITH ('connector'='datagen', 'nope'='1');
CREATE VIEW v3 AS SELECT a FROM badopt;
CREATE TABLE sinkonly (a INT) WITH ('connector'='blackhole');
CREATE VIEW v4 AS SELECT a FROM sinkonly;
SELECT * FROM v4;
CREATE VIEW v5 AS SELECT NULL AS n;
CREATE VIEW v6 AS SELECT NULL;
CREATE VIEW v7 AS SELECT a FROM nope;
CREATE VIEW v8 AS SELECT nofunc(1) AS x;
CREATE VIEW v9 AS SELECT 1 AS x, 'a';
DESCRIBE v9;
CREATE VIEW v10 (x, y) AS VALUES (1, 'a'), (2, 'b');
SELECT * FROM v10;
CREATE TABLE t (k INT, v INT) WITH ('connector'='changelog', 'data'='
+I|1|2
');
CREATE VIEW v11 AS SELECT * FROM t;
ALTER TABLE t ADD w INT;
SELECT * FROM v11;
DROP TABLE t;
SELECT * FROM v11;
DESCRIBE v11;
SHOW CREATE VIEW v11;
CREATE VIEW v12 AS SELECT k FROM v11;
CREATE TABLE t (k INT, z INT) WITH ('connector'='changelog', 'data'='
+I|1|2
');
SELECT * FROM v11;
DROP VIEW IF EXISTS v99;
DROP VIEW v99;
EXPLAIN SELECT * FROM v1;
SHOW VIEWS;
