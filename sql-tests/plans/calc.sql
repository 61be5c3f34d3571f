CREATE TABLE a (k STRING, v INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '');
EXPLAIN CHANGELOG_MODE SELECT UPPER(k) AS u, v + 1 AS n FROM a WHERE v > 1 AND k LIKE 'x%';
