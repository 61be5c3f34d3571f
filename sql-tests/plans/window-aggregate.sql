CREATE TABLE a (k STRING, v INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '');
EXPLAIN CHANGELOG_MODE SELECT k, window_end, COUNT(*) AS n FROM TABLE(HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end;
EXPLAIN CHANGELOG_MODE SELECT window_end, SUM(v) AS s FROM TABLE(CUMULATE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)) GROUP BY window_start, window_end;
