-- compare: bag
-- about: which conditions bound the times of an interval join, and a temporal join by USING
SET 'pipeline.auto-watermark-interval' = '0';
CREATE TABLE l (id INT, k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
@1 +I|1|a|2025-03-01T10:00:01
@3 +I|2|a|2025-03-01T10:00:10
@5 +I|5|a|2025-03-01T10:00:40
');
CREATE TABLE r (rid INT, k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
@2 +I|11|a|2025-03-01T10:00:04
@4 +I|14|a|2025-03-01T10:00:50
@6 +I|15|a|2025-03-01T10:00:09
@8 +I|16|a|2025-03-01T10:00:42
');
CREATE VIEW j AS SELECT id, rid, l.ts FROM l JOIN r ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL '5' SECOND AND TIMESTAMPADD(SECOND, 5, l.ts);
SELECT * FROM j;
SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
SELECT id, rid FROM l JOIN r ON l.k = r.k AND r.ts >= TIMESTAMPADD(MINUTE, -1, l.ts) AND r.ts <= l.ts;
SELECT id, rid FROM l JOIN r ON l.k = r.k AND NOT (r.ts < l.ts OR r.ts > l.ts + INTERVAL '5' SECOND);
SELECT id, rid FROM l JOIN r ON l.k = r.k AND r.ts = l.ts + INTERVAL '2' SECOND;
SELECT id, rid FROM l JOIN r ON l.k = r.k AND r.ts - INTERVAL '2' SECOND = l.ts;
SELECT id, rid FROM l JOIN r ON l.k = r.k AND r.ts - INTERVAL '2' SECOND = l.ts AND r.ts >= l.ts AND r.ts < l.ts + INTERVAL '9' SECOND;
SELECT id, rid FROM l JOIN r ON l.k = r.k AND l.ts + INTERVAL '2' SECOND = l.ts + INTERVAL '2' SECOND;
EXPLAIN SELECT id, rid FROM l JOIN r ON l.k = r.k AND r.ts BETWEEN l.ts AND TIMESTAMPADD(DAY, 1, l.ts);
EXPLAIN SELECT id, rid FROM l JOIN r ON l.k = r.k AND r.ts BETWEEN l.ts AND TIMESTAMPADD(MONTH, 1, l.ts);
EXPLAIN SELECT id, rid FROM l JOIN r ON l.k = r.k AND NOT (r.ts < l.ts OR r.ts > l.ts + INTERVAL '5' SECOND);
EXPLAIN SELECT id, rid FROM l JOIN r ON l.k = r.k AND NOT (r.ts < l.ts) AND NOT (r.ts > l.ts + INTERVAL '5' SECOND);
EXPLAIN SELECT id FROM l WHERE NOT (id < 2 OR id > 3);
EXPLAIN SELECT id, rid FROM l JOIN r ON l.k = r.k AND r.ts = l.ts;
CREATE TABLE o (id INT, cur STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
@2 +I|1|EUR|2025-03-01T10:00:01
+I|2|USD|2025-03-01T10:00:05
+I|4|GBP|2025-03-01T10:00:06
@6 +I|5|EUR|2025-03-01T10:00:20
');
CREATE TABLE rates (cur STRING, rate DECIMAL(6,2), rts TIMESTAMP(3), WATERMARK FOR rts AS rts, PRIMARY KEY (cur) NOT ENFORCED) WITH ('connector'='changelog', 'changelog-mode'='I,UB,UA,D', 'data'='
@1 +I|EUR|1.10|2025-03-01T10:00:00
+I|USD|1.00|2025-03-01T10:00:02
@4 -U|EUR|1.10|2025-03-01T10:00:00
+U|EUR|1.20|2025-03-01T10:00:10
-D|USD|1.00|2025-03-01T10:00:04
');
SELECT * FROM o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r USING (cur);
SELECT * FROM o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts USING (cur);
SELECT cur, id, r.rate FROM o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r USING (cur);
CREATE TABLE nn (cur STRING NOT NULL, x INT NOT NULL) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|EUR|1
');
SELECT * FROM o JOIN nn USING (cur);
SELECT * FROM o LEFT JOIN nn USING (cur);
SELECT cur, COUNT(*) FROM nn JOIN o USING (cur) GROUP BY cur;
