-- compare: exact
-- about: PI without parentheses is the constant, before any column of that name
CREATE TABLE t (id INT, pi INT) WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '+I|1|5');
SELECT pi, COUNT(*) FROM t GROUP BY pi;
SELECT pi, PI(), `pi`, t.pi FROM t;
CREATE VIEW v AS SELECT PI AS p, `pi` FROM t;
SHOW CREATE VIEW v;
CREATE TABLE u (id INT, x AS pi * 2, y AS PI) WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '+I|1');
SELECT * FROM u;
SHOW CREATE TABLE u;
