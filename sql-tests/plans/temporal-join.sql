CREATE TABLE a (k STRING, v INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '');
CREATE TABLE u (k STRING, v INT, ts TIMESTAMP(3), PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR ts AS ts)
  WITH ('connector' = 'changelog', 'changelog-mode' = 'I,UA,D', 'data' = '');
EXPLAIN CHANGELOG_MODE SELECT a.k, u.v FROM a LEFT JOIN u FOR SYSTEM_TIME AS OF a.ts ON a.k = u.k;
