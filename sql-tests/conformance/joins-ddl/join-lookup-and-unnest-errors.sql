-- compare: folded
-- about: UNNEST, table functions and FOR SYSTEM_TIME in their forms and misuse
CREATE TABLE t (id INT, a ARRAY<INT>, m MAP<STRING, INT>, r ARRAY<ROW<p INT, q STRING>>, s STRING, ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|[10, 20]|{x=1}|[(1, one), (2, two)]|a b|2024-01-01T00:00
+I|2|[]|{}|[]||2024-01-01T00:01
+I|3|\N|\N|\N|\N|2024-01-01T00:02
');
CREATE TABLE dim (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='changelog', 'changelog-mode'='I,UA,D', 'data'='
+I|1|one
');
SELECT id, e FROM t CROSS JOIN UNNEST(a) AS u(e);
SELECT id, e FROM t, UNNEST(a) AS u(e);
SELECT id, e FROM t LEFT JOIN UNNEST(a) AS u(e) ON TRUE;
SELECT id, e FROM t LEFT JOIN UNNEST(a) AS u(e) ON e > 10;
SELECT id, e FROM t JOIN UNNEST(a) AS u(e) ON TRUE;
SELECT id, e FROM t JOIN UNNEST(a) AS u(e) ON e > 10;
SELECT id, e, o FROM t CROSS JOIN UNNEST(a) WITH ORDINALITY AS u(e, o);
SELECT id, e, o FROM t LEFT JOIN UNNEST(a) WITH ORDINALITY AS u(e, o) ON TRUE;
SELECT id, k, v FROM t CROSS JOIN UNNEST(m) AS u(k, v);
SELECT id, p, q FROM t CROSS JOIN UNNEST(r) AS u(p, q);
SELECT id, u.* FROM t CROSS JOIN UNNEST(r) AS u;
SELECT * FROM UNNEST(ARRAY[1, 2]) AS u(x);
SELECT * FROM UNNEST(ARRAY[ROW(1, 'a')]) AS u(x, y);
SELECT id FROM t CROSS JOIN UNNEST(s) AS u(e);
SELECT id FROM t CROSS JOIN UNNEST(a) AS u(e, f);
SELECT id, w FROM t, LATERAL TABLE(SPLIT(s, ' ')) AS u(w);
SELECT id, w FROM t, LATERAL TABLE(nope(s)) AS u(w);
SELECT id, w FROM t, LATERAL TABLE(UPPER(s)) AS u(w);
SELECT t.id, d.name FROM t JOIN dim FOR SYSTEM_TIME AS OF t.ts AS d ON t.id = d.id;
SELECT t.id, d.name FROM t JOIN dim FOR SYSTEM_TIME AS OF t.pt AS d ON t.id = d.id;
SELECT t.id, d.name FROM t JOIN dim FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00' AS d ON t.id = d.id;
SELECT t.id, d.name FROM t RIGHT JOIN dim FOR SYSTEM_TIME AS OF t.ts AS d ON t.id = d.id;
SELECT * FROM dim FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00';
SELECT t.id, d.name FROM t JOIN dim FOR SYSTEM_TIME AS OF t.id AS d ON t.id = d.id;
SELECT * FROM TABLE(nope(TABLE t));
SELECT * FROM t PIVOT (SUM(id) FOR s IN ('a'));
SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.id AS i PATTERN (A) DEFINE A AS TRUE);
SELECT * FROM GENERATE_SERIES(1, 3);
