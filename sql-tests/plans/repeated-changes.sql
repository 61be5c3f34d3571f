SET 'table.exec.source.cdc-events-duplicate' = 'true';
CREATE TABLE t (id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='changelog', 'data'='
+I|1|a|5
');
CREATE TABLE s1 (id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='changelog','changelog-mode'='I,UA,D');
EXPLAIN CHANGELOG_MODE SELECT k, v FROM t WHERE v > 5;
EXPLAIN CHANGELOG_MODE INSERT INTO s1 SELECT * FROM t;
