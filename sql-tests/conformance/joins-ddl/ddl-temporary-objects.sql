-- compare: exact
-- modes: p1
-- about: temporary tables and views hide permanent ones until they are dropped
CREATE TABLE t (a INT) WITH ('connector'='changelog', 'data'='
+I|1
');
CREATE TEMPORARY TABLE t (a STRING) WITH ('connector'='changelog', 'data'='
+I|temp
');
SELECT * FROM t;
DESCRIBE t;
SHOW TABLES;
DROP TABLE t;
DROP TEMPORARY TABLE t;
SELECT * FROM t;
CREATE TEMPORARY VIEW t AS SELECT 'view' AS v;
SELECT * FROM t;
DROP TABLE t;
DROP VIEW t;
DROP TEMPORARY TABLE t;
DROP TEMPORARY VIEW t;
DROP TEMPORARY TABLE IF EXISTS t;
CREATE TEMPORARY TABLE tt (a INT) WITH ('connector'='print');
CREATE TEMPORARY TABLE tt (a INT) WITH ('connector'='print');
CREATE TEMPORARY TABLE IF NOT EXISTS tt (a INT) WITH ('connector'='print');
ALTER TABLE tt ADD b INT;
DESCRIBE tt;
ALTER TABLE tt RENAME TO tu;
ALTER TABLE tt SET ('x'='y');
DROP TABLE tt;
DROP TABLE IF EXISTS tt;
SHOW TABLES;
CREATE TEMPORARY TABLE nodb.tt (a INT) WITH ('connector'='print');
CREATE TABLE nodb.tt (a INT) WITH ('connector'='print');
CREATE VIEW nodb.vv AS SELECT 1 AS x;
CREATE VIEW t AS SELECT 1 AS x;
CREATE TABLE t (a INT) WITH ('connector'='print');
CREATE TABLE IF NOT EXISTS t (b STRING) WITH ('connector'='print');
DESCRIBE t;
DROP TABLE IF EXISTS nope;
DROP TABLE nope;
DROP TABLE default_catalog.default_database.t;
SHOW TABLES;
DROP TEMPORARY TABLE nope;
