CREATE TABLE a (k STRING, v INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '');
CREATE TABLE r (k STRING, v INT) WITH ('connector' = 'changelog', 'data' = '');
EXPLAIN CHANGELOG_MODE SELECT k FROM a WHERE k IN (SELECT k FROM r);
EXPLAIN CHANGELOG_MODE SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = a.k);
