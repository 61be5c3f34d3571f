-- compare: bag
-- about: MATCH_ROWTIME over a row time that is an instant: without an argument a timestamp, as UTC shows it
SET 'pipeline.auto-watermark-interval' = '0';
CREATE TABLE z (id INT, k STRING, v INT, ts TIMESTAMP_LTZ(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|a|5|2025-03-30T00:30:00
+I|2|b|7|2025-03-30T00:59:59.999
+I|3|a|\N|2025-03-30T01:00:00
+I|4|\N|2|2025-03-30T01:30:00
+I|5|a|5|2025-03-30T22:00:00
+I|6|b|1|2025-10-26T00:30:00
+I|7|a|9|2025-10-26T01:30:00
+I|8|a|3|2025-10-26T02:30:00
');
SET 'table.local-time-zone' = 'Asia/Tokyo';
CREATE VIEW m AS SELECT * FROM z MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.ts AS ats, MATCH_ROWTIME() AS mr, MATCH_ROWTIME(ts) AS mr2, MATCH_PROCTIME() AS mp PATTERN (A B) DEFINE B AS B.v > 0) AS m;
DESCRIBE m;
SELECT k, ats, mr, mr2 FROM m;
SELECT window_start, window_end, COUNT(*) c FROM TABLE(TUMBLE(TABLE m, DESCRIPTOR(mr), INTERVAL '1' DAY)) GROUP BY window_start, window_end;
SELECT window_start, window_end, COUNT(*) c FROM TABLE(TUMBLE(TABLE m, DESCRIPTOR(mr2), INTERVAL '1' DAY)) GROUP BY window_start, window_end;
SELECT TUMBLE_START(mr, INTERVAL '1' DAY) s, COUNT(*) c FROM m GROUP BY TUMBLE(mr, INTERVAL '1' DAY);
SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' DAY) s, COUNT(*) c FROM z GROUP BY TUMBLE(ts, INTERVAL '1' DAY);
