-- compare: folded
-- about: sinks whose key is not the query's: ON CONFLICT, and the settings around it
CREATE TABLE src (id INT, name STRING, v INT) WITH ('connector'='changelog', 'data'='
+I|1|a|10
+I|2|a|20
+I|3|b|30
-D|2|a|20
');
CREATE TABLE app (id INT, name STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|a|10|2024-01-01T00:00
+I|2|b|20|2024-01-01T00:01
');
CREATE TABLE s (name STRING, v INT, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector'='changelog', 'changelog-mode'='I,UA,D');
CREATE TABLE sfull (name STRING, v INT, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector'='changelog');
CREATE TABLE nokey (name STRING, v INT) WITH ('connector'='changelog');
CREATE TABLE sb (name STRING, v BIGINT, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector'='changelog', 'changelog-mode'='I,UA,D');
INSERT INTO s SELECT name, v FROM src;
INSERT INTO s SELECT name, v FROM src ON CONFLICT DO DEDUPLICATE;
INSERT INTO s SELECT name, v FROM src ON CONFLICT DO NOTHING;
INSERT INTO s SELECT name, v FROM src ON CONFLICT DO ERROR;
INSERT INTO sfull SELECT name, v FROM src;
INSERT INTO sfull SELECT name, v FROM src ON CONFLICT DO DEDUPLICATE;
INSERT INTO nokey SELECT name, v FROM src ON CONFLICT DO DEDUPLICATE;
INSERT INTO s SELECT name, v FROM app;
INSERT INTO s SELECT name, v FROM app ON CONFLICT DO DEDUPLICATE;
INSERT INTO s SELECT name, v FROM app ON CONFLICT DO NOTHING;
INSERT INTO s SELECT name, v FROM app ON CONFLICT DO ERROR;
INSERT INTO sb SELECT name, COUNT(*) FROM src GROUP BY name;
INSERT INTO sb SELECT name, COUNT(*) FROM src GROUP BY name ON CONFLICT DO NOTHING;
INSERT INTO sb SELECT UPPER(name), COUNT(*) FROM src GROUP BY name;
INSERT INTO sb SELECT UPPER(name), COUNT(*) FROM src GROUP BY name ON CONFLICT DO DEDUPLICATE;
INSERT INTO sb SELECT CAST(name AS VARCHAR(20)), COUNT(*) FROM src GROUP BY name;
INSERT INTO sb SELECT 'k', COUNT(*) FROM src;
INSERT INTO sb SELECT name, MAX(v) FROM src GROUP BY name, id;
SET 'table.exec.sink.require-on-conflict' = 'false';
INSERT INTO s SELECT name, v FROM src;
INSERT INTO sb SELECT UPPER(name), COUNT(*) FROM src GROUP BY name;
RESET 'table.exec.sink.require-on-conflict';
SET 'table.exec.sink.upsert-materialize' = 'NONE';
INSERT INTO s SELECT name, v FROM src;
INSERT INTO sb SELECT UPPER(name), COUNT(*) FROM src GROUP BY name;
SET 'table.exec.sink.upsert-materialize' = 'FORCE';
INSERT INTO s SELECT name, v FROM app;
INSERT INTO sb SELECT name, COUNT(*) FROM src GROUP BY name;
