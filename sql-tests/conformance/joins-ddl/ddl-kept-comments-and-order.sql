-- compare: exact
-- about: ALTER TABLE MODIFY keeps comments; CREATE TABLE AS puts new columns before those of the query, which may read the table that it replaces
CREATE TABLE m (a INT COMMENT 'aa', b AS a + 1 COMMENT 'bb', m STRING METADATA COMMENT 'mm', c INT COMMENT 'cc', d INT, e INT COMMENT 'ee') WITH ('connector' = 'blackhole');
ALTER TABLE m MODIFY a BIGINT;
ALTER TABLE m MODIFY (b AS a + 2, m INT METADATA FROM 'x');
ALTER TABLE m MODIFY c AS a + 3;
ALTER TABLE m MODIFY d BIGINT COMMENT 'new' FIRST;
ALTER TABLE m MODIFY e INT COMMENT '';
DESCRIBE m;
SHOW CREATE TABLE m;
CREATE TABLE t (id INT, ts TIMESTAMP(3)) WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '+I|1|2024-01-01T00:00:00');
CREATE TABLE c1 (b BIGINT, a INT) WITH ('connector' = 'changelog') AS SELECT 1 AS x, 2 AS b, 3 AS y;
DESCRIBE c1;
CREATE TABLE c2 (z AS x + 1, WATERMARK FOR ts AS ts) WITH ('connector' = 'blackhole') AS SELECT id AS x, ts FROM t;
DESCRIBE c2;
CREATE TABLE c3 (y STRING COMMENT 'yy', z AS x + 1, x BIGINT NOT NULL, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'blackhole') AS SELECT 1 AS x, 2 AS b, 'q' AS y;
DESCRIBE c3;
CREATE TABLE c4 (y, q, x) WITH ('connector' = 'blackhole') AS SELECT 1 AS x, 2 AS q, 3 AS y;
DESCRIBE c4;
CREATE TABLE src (s STRING) WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '
+I|a
+I|b
');
CREATE OR REPLACE TABLE src WITH ('connector' = 'changelog') AS SELECT s, s || '!' AS u FROM src;
DESCRIBE src;
CREATE OR REPLACE TABLE src WITH ('connector' = 'blackhole') AS SELECT x FROM src;
DESCRIBE src;
