-- compare: exact
-- about: rows without a time (the right side of a LEFT interval join) in windows
CREATE TABLE l (id INT, k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
@1 +I|1|a|2025-03-01T10:00:01
@3 +I|2|b|2025-03-01T10:00:10
@5 +I|3|a|2025-03-01T10:00:40
');
CREATE TABLE r (rid INT, k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
@2 +I|11|a|2025-03-01T10:00:04
@6 +I|14|a|2025-03-01T10:00:50
');
CREATE VIEW j AS SELECT id, rid, l.k, l.ts AS lts, r.ts AS rts FROM l LEFT JOIN r ON l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL '5' SECOND;
SELECT * FROM j;
SELECT COUNT(*) c FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(rts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
SELECT COUNT(*) c FROM TABLE(HOP(TABLE j, DESCRIPTOR(rts), INTERVAL '10' SECOND, INTERVAL '20' SECOND)) GROUP BY window_start, window_end;
SELECT COUNT(*) c FROM TABLE(SESSION(TABLE j, DESCRIPTOR(rts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
SELECT id, window_start FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(rts), INTERVAL '10' SECOND));
SELECT COUNT(*) c FROM j GROUP BY TUMBLE(rts, INTERVAL '10' SECOND);
SELECT COUNT(*) c FROM j GROUP BY SESSION(rts, INTERVAL '10' SECOND);
SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY rts) c FROM j;
SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY rts ROWS 1 PRECEDING) c FROM j;
SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY rts) rn FROM j) WHERE rn = 1;
SELECT j.id, l.id FROM j JOIN l ON j.k = l.k AND l.ts BETWEEN j.rts AND j.rts + INTERVAL '5' SECOND;
SELECT id, window_start FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(rts), INTERVAL '10' SECOND)) WHERE rts IS NOT NULL;
SELECT COUNT(*) c FROM TABLE(TUMBLE((SELECT * FROM j WHERE rts IS NOT NULL), DESCRIPTOR(rts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
