CREATE TABLE a (k STRING, v INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '');
CREATE TABLE r (k STRING, v INT) WITH ('connector' = 'changelog', 'data' = '');
EXPLAIN CHANGELOG_MODE SELECT k, COUNT(*) AS n, SUM(DISTINCT v) AS s, MAX(v) FILTER (WHERE v > 1) AS m FROM a GROUP BY k HAVING COUNT(*) > 1;
EXPLAIN CHANGELOG_MODE SELECT k, MIN(v) AS m FROM r GROUP BY k;
