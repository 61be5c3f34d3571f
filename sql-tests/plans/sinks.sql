CREATE TABLE a (k STRING, v INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'changelog', 'changelog-mode' = 'I', 'data' = '');
CREATE TABLE r (k STRING, v INT) WITH ('connector' = 'changelog', 'data' = '');
CREATE TABLE keyed (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'changelog', 'changelog-mode' = 'I,UA,D');
CREATE TABLE retract (k STRING, n BIGINT) WITH ('connector' = 'changelog');
EXPLAIN CHANGELOG_MODE INSERT INTO keyed SELECT k, COUNT(*) FROM a GROUP BY k;
EXPLAIN CHANGELOG_MODE INSERT INTO retract SELECT k, COUNT(*) FROM a GROUP BY k;
EXPLAIN CHANGELOG_MODE INSERT INTO keyed SELECT k, v FROM r ON CONFLICT DO DEDUPLICATE;
EXPLAIN STATEMENT SET BEGIN INSERT INTO retract SELECT k, v FROM a; INSERT INTO keyed SELECT k, COUNT(*) FROM a GROUP BY k; END;
