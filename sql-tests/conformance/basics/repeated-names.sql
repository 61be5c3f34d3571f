-- compare: exact
-- about: names of repeated columns, with and without a sort key that is not selected
CREATE TABLE t (id INT, k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|a|5|2025-03-01T10:00:01
+I|2|b|7|2025-03-01T10:00:04
');
SELECT id, id FROM t;
SELECT id, id FROM t LIMIT 1;
SELECT id, id FROM t ORDER BY v LIMIT 1;
SELECT id, id FROM t ORDER BY v + 1 LIMIT 1;
SELECT id, id, id FROM t ORDER BY ts;
SELECT id, k, id, k FROM t ORDER BY v LIMIT 1;
SELECT id, v AS id0, id FROM t ORDER BY k LIMIT 1;
SELECT id, id, v FROM t ORDER BY v LIMIT 1;
SELECT id, id FROM t ORDER BY 2 LIMIT 1;
SELECT k, k FROM t GROUP BY k ORDER BY COUNT(*) LIMIT 1;
SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id ORDER BY a.v LIMIT 1;
SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id ORDER BY a.id LIMIT 1;
SELECT id, id FROM t ORDER BY id LIMIT 1;
SELECT id, v AS id FROM t ORDER BY id LIMIT 1;
SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id ORDER BY id LIMIT 1;
SELECT k, k FROM (SELECT * FROM t ORDER BY v LIMIT 1);
SELECT * FROM t a JOIN t b ON a.id = b.id ORDER BY a.v + b.v LIMIT 1;
SELECT id AS x, k AS x FROM t ORDER BY id LIMIT 1;
SELECT id, -id AS id FROM t ORDER BY t.id LIMIT 1;
