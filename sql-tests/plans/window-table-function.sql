CREATE TABLE a (k STRING, v INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '');
EXPLAIN CHANGELOG_MODE SELECT k, window_start FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' MINUTE));
