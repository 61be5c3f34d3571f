-- compare: exact
-- about: Keys that are looked up in a map by columns of other types
CREATE TABLE t (id INT, k STRING, c CHAR(1), i INT, b BIGINT) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|abc|a|1|1
+I|2|\N|\N|\N|\N
+I|3|a|b|2|2
');
SELECT id, MAP['a', 1][k] AS mk, MAP['a', 1][c] AS mc, MAP['ab', 1][k] AS m2, MAP['a', 'x'][k] AS ms, MAP['a', 1.5][k] AS md, MAP[1, 5][i] AS mi, MAP[1, 5][b] AS mb, MAP[CAST(1 AS BIGINT), 5][i] AS mbi FROM t;
