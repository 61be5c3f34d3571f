-- compare: folded
-- about: which queries each kind of sink takes: append, upsert and retract, with and without key
CREATE TABLE a (k STRING, v INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|a|1|2024-01-01T00:00:01
+I|b|2|2024-01-01T00:00:02
+I|a|3|2024-01-01T00:00:12
');
CREATE TABLE r (k STRING, v INT) WITH ('connector'='changelog', 'data'='
+I|a|1
+I|b|2
-U|a|1
+U|a|5
-D|b|2
');
CREATE TABLE u (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector'='changelog', 'changelog-mode'='I,UA,D', 'data'='
+I|a|1
+U|a|2
+I|b|3
-D|b|3
');
CREATE TABLE app (k STRING, v BIGINT) WITH ('connector'='changelog', 'changelog-mode'='I');
CREATE TABLE appk (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector'='changelog', 'changelog-mode'='I');
CREATE TABLE ups (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector'='changelog', 'changelog-mode'='I,UA,D');
CREATE TABLE upsnk (k STRING, v BIGINT) WITH ('connector'='changelog', 'changelog-mode'='I,UA,D');
CREATE TABLE upsnd (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector'='changelog', 'changelog-mode'='I,UA');
CREATE TABLE ret (k STRING, v BIGINT) WITH ('connector'='changelog');
CREATE TABLE retk (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector'='changelog');
CREATE TABLE noud (k STRING, v BIGINT) WITH ('connector'='changelog', 'changelog-mode'='I,D');
INSERT INTO app SELECT k, v FROM a;
INSERT INTO app SELECT k, v FROM r;
INSERT INTO app SELECT k, v FROM u;
INSERT INTO app SELECT k, COUNT(*) FROM a GROUP BY k;
INSERT INTO app SELECT k, v FROM a WHERE v > 1 UNION ALL SELECT k, v FROM a;
INSERT INTO app SELECT k, v FROM a LIMIT 2;
INSERT INTO app SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p) AS rn FROM a) WHERE rn = 1;
INSERT INTO app SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p DESC) AS rn FROM a) WHERE rn = 1;
INSERT INTO app SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS rn FROM a) WHERE rn = 1;
INSERT INTO app SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS rn FROM a) WHERE rn <= 2;
INSERT INTO app SELECT k, SUM(v) FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO app SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM a;
INSERT INTO app SELECT a.k, b.v FROM a JOIN a AS b ON a.k = b.k;
INSERT INTO app SELECT a.k, b.v FROM a LEFT JOIN a AS b ON a.k = b.k;
INSERT INTO app SELECT DISTINCT k, v FROM a;
INSERT INTO app SELECT k, v FROM a WHERE k IN (SELECT k FROM a);
INSERT INTO app SELECT k, v FROM a WHERE k NOT IN (SELECT k FROM u);
INSERT INTO app SELECT k, v FROM a INTERSECT SELECT k, v FROM a;
INSERT INTO app SELECT k, v FROM a UNION SELECT k, v FROM a;
INSERT INTO appk SELECT k, v FROM a;
INSERT INTO appk SELECT k, COUNT(*) FROM a GROUP BY k;
INSERT INTO ups SELECT k, v FROM u;
INSERT INTO ups SELECT k, COUNT(*) FROM r GROUP BY k;
INSERT INTO ups SELECT k, COUNT(*) FROM u GROUP BY k HAVING COUNT(*) > 1;
INSERT INTO upsnk SELECT k, COUNT(*) FROM r GROUP BY k;
INSERT INTO upsnk SELECT k, v FROM a;
INSERT INTO upsnd SELECT k, COUNT(*) FROM a GROUP BY k;
INSERT INTO upsnd SELECT k, COUNT(*) FROM r GROUP BY k;
INSERT INTO ret SELECT k, COUNT(*) FROM r GROUP BY k;
INSERT INTO ret SELECT k, v FROM u;
INSERT INTO retk SELECT k, COUNT(*) FROM r GROUP BY k;
INSERT INTO retk SELECT k, v FROM u;
INSERT INTO noud SELECT k, v FROM r;
INSERT INTO noud SELECT k, COUNT(*) FROM a GROUP BY k;
INSERT INTO noud SELECT k, v FROM a;
CREATE TABLE badmode (k STRING, v BIGINT) WITH ('connector'='changelog', 'changelog-mode'='I,X');
INSERT INTO badmode SELECT k, v FROM a;
CREATE TABLE onlyu (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector'='changelog', 'changelog-mode'='UA');
INSERT INTO onlyu SELECT k, v FROM a;
