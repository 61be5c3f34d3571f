-- compare: exact
-- about: IS JSON, JSON_EXISTS, JSON_VALUE and JSON_QUERY on all kinds of documents, with every ON EMPTY and ON ERROR; JSON of values of every type
CREATE TABLE j (id INT, s STRING) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|{"a": 1, "b": "x", "c": [10, 20, {"d": 5}], "d": {"e": true, "f": null}, "n": null, "f": 1.50, "g": 1e3, "big": 12345678901234567890, "u": "\u00e9\n\"q\""}
+I|2|[1, [2, 3], {"a": {"a": 7}}, "s", null]
+I|3|"str"
+I|4|12
+I|5|null
+I|6|not json
+I|7|
+I|8|\N
+I|9|{"a": 1, "a": 2} trailing
+I|10|  {"b.c": 1, "x y": [ ], "é": "ü", "z": {}, "list": [{"p": 1, "q": "a"}, {"p": 2}, {"p": 3, "q": "c"}]}
+I|11|true
+I|12|{"a": 01}
+I|13|{''a'': 1}
+I|14|[1,2,]
');
SELECT id, s IS JSON AS v, s IS JSON VALUE AS vv, s IS JSON OBJECT AS o, s IS JSON ARRAY AS a, s IS JSON SCALAR AS sc, s IS NOT JSON AS nv FROM j;
SELECT id, JSON_EXISTS(s, '$.a') AS e, JSON_EXISTS(s, 'lax $.a') AS el, JSON_EXISTS(s, 'strict $.zz' TRUE ON ERROR) AS et, JSON_EXISTS(s, 'strict $.zz' UNKNOWN ON ERROR) AS eu, JSON_EXISTS(s, '$.n') AS en, JSON_EXISTS(s, '$') AS r, JSON_EXISTS(s, 'lax $.n') AS eln, JSON_EXISTS(s, '$[*]') AS st FROM j;
SELECT id, JSON_VALUE(s, 'lax $.a') AS a, JSON_VALUE(s, '$.g') AS g, JSON_VALUE(s, '$.big') AS big, JSON_VALUE(s, '$.u') AS u, JSON_VALUE(s, '$') AS r, JSON_VALUE(s, '$.c[-1].d') AS neg, JSON_VALUE(s, '$.c[*]') AS st, JSON_VALUE(s, '$..d') AS deep, JSON_VALUE(s, '$[''b.c'']') AS br, JSON_VALUE(s, 'lax $.c.d') AS lx, JSON_VALUE(s, '$.c.length()') AS len FROM j;
SELECT id, JSON_VALUE(s, '$.n' DEFAULT 'e' ON EMPTY DEFAULT 'r' ON ERROR) AS n1, JSON_VALUE(s, 'lax $.n' DEFAULT 'e' ON EMPTY DEFAULT 'r' ON ERROR) AS n2, JSON_VALUE(s, 'lax $.c' DEFAULT 'e' ON EMPTY DEFAULT 'r' ON ERROR) AS n3, JSON_VALUE(s, '$.c' DEFAULT 'e' ON EMPTY DEFAULT 'r' ON ERROR) AS n4 FROM j;
SELECT id, JSON_QUERY(s, 'lax $.b' EMPTY ARRAY ON EMPTY EMPTY OBJECT ON ERROR) AS b1, JSON_QUERY(s, '$.b' EMPTY ARRAY ON EMPTY EMPTY OBJECT ON ERROR) AS b2, JSON_QUERY(s, '$.d' WITH CONDITIONAL WRAPPER) AS d1, JSON_QUERY(s, '$.u' WITH WRAPPER) AS u, JSON_QUERY(s, '$.f' WITH WRAPPER) AS f, JSON_QUERY(s, '$.g' WITH WRAPPER) AS g FROM j;
SELECT id, JSON_QUERY(s, '$.c' RETURNING ARRAY<STRING>) AS a, JSON_QUERY(s, '$' RETURNING ARRAY<STRING> EMPTY ARRAY ON ERROR) AS b, JSON_QUERY(s, '$.c[*]' RETURNING ARRAY<STRING> WITH CONDITIONAL WRAPPER) AS c FROM j;
SELECT id, JSON_QUERY(s, '$.d' RETURNING ARRAY<STRING>) AS a FROM j WHERE id = 1;
SELECT id, JSON_QUERY(s, '$.zz' ERROR ON EMPTY NULL ON ERROR) AS a FROM j WHERE id = 1;
SELECT id, JSON_QUERY(s, 'lax $.zz' ERROR ON EMPTY) AS a FROM j WHERE id = 1;
SELECT id, JSON_VALUE(s, 'lax $.zz' ERROR ON EMPTY) AS a FROM j WHERE id = 1;
SELECT JSON_VALUE('{"a":1}', 'bad path[') AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_VALUE('{"a":1}', '') AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_EXISTS('{"a":1}', '$.b' ERROR ON ERROR) AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_VALUE('{"a":5}', '$.a' RETURNING BIGINT) AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_VALUE('{"a":1.5}', '$.a' RETURNING STRING) AS a, JSON_VALUE('{"a":1.10}', '$.a') AS b, JSON_VALUE('{"a":1E+2}', '$.a') AS c, JSON_VALUE('{"a":0.00000001}', '$.a') AS d, JSON_VALUE('{"a":100000000000000000000000.5}', '$.a') AS e, JSON_VALUE('{"a":-0}', '$.a') AS f, JSON_VALUE('{"a":-0.0}', '$.a') AS g, JSON_VALUE('{"a":1e400}', '$.a') AS h FROM (VALUES (1)) AS v(x);
SELECT JSON_QUERY('{"z":1.10,"b":[1E+2,0.00000001,"\u00e9/\u0001\t"],"a":{"y":1,"x":2}}', '$') AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_STRING(1) AS a, JSON_STRING('q"x') AS b, JSON_STRING(1.50) AS c, JSON_STRING(CAST(2 AS DOUBLE)) AS d, JSON_STRING(TRUE) AS e, JSON_STRING(CAST(NULL AS INT)) AS f, JSON_STRING(ARRAY[1, 2]) AS g, JSON_STRING(MAP['b', 1, 'a', 2]) AS h, JSON_STRING(ROW(1, 'x')) AS i, JSON_STRING(DATE '2024-01-02') AS k, JSON_STRING(TIMESTAMP '2024-01-02 03:04:05.678') AS l, JSON_STRING(TIME '01:02:03') AS m, JSON_STRING(x'0102') AS n, JSON_STRING(INTERVAL '1' DAY) AS o FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT('k' VALUE CAST(NULL AS STRING)) AS a, JSON_OBJECT('k' VALUE ARRAY[1, 2], 'm' VALUE MAP['x', 1], 'r' VALUE ROW(1, 'y'), 'd' VALUE DATE '2024-01-02', 't' VALUE TIME '01:02:03', 'z' VALUE TO_TIMESTAMP_LTZ(0, 3)) AS b, JSON_OBJECT('b' VALUE 1, 'a' VALUE 2, 'b' VALUE 3) AS c, JSON_ARRAY(1, 'a', NULL, TRUE, 1.5, CAST(1e20 AS DOUBLE)) AS d, JSON_ARRAY(NULL NULL ON NULL) AS e, JSON_OBJECT('f' VALUE CAST(1.5 AS FLOAT), 'big' VALUE 12345678901234567890.123) AS f FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT('k' VALUE JSON('{"x": [1, 2]}')) AS a, JSON_ARRAY(JSON('[1]'), JSON('"s"')) AS b, JSON_OBJECT('k' VALUE JSON_STRING(ROW(1))) AS c, JSON_OBJECT('k' VALUE JSON_QUERY('{"a":[1]}', '$.a')) AS d FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT('k' VALUE JSON('bad')) AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_QUERY('{"c":[10,20,{"d":5}]}', '$.c[0:2]') AS sl FROM (VALUES (1)) AS v(x);
SELECT JSON_QUERY('{"c":[10,20,{"d":5}]}', '$.c[0,1]') AS sl FROM (VALUES (1)) AS v(x);
SELECT JSON_QUERY('{"c":[10,20,{"d":5}], "d":7}', '$..d') AS sl FROM (VALUES (1)) AS v(x);
SELECT JSON_QUERY('{"c":[{"d":6},{"d":5}], "d":7}', '$.c[*].d') AS sl, JSON_QUERY('{"c":[{"d":6},{"d":5}], "d":7}', '$[''c'',''d'']') AS sl1, JSON_VALUE('{"c":[{"d":6},{"d":5}]}', '$.c[1].d') AS sl2, JSON_VALUE('{"c":[{"d":6},{"d":5}]}', '$.c[5].d' DEFAULT 'oob' ON ERROR) AS sl3, JSON_QUERY('{"c":[{"d":6},{"d":5}]}', '$.*.d') AS sl4, JSON_QUERY('{"c":[{"d":6},{"d":5}]}', '$.c[-1:]') AS sl5, JSON_QUERY('{"c":[{"d":6},{"e":5}]}', '$.c[*].d') AS sl6, JSON_QUERY('{"c":[{"d":6},{"e":5}]}', '$..*') AS sl7 FROM (VALUES (1)) AS v(x);
SELECT JSON_QUERY('{"c":[{"d":6},{"d":5}]}', '$.c[?(@.d > 5)]') AS sl FROM (VALUES (1)) AS v(x);
SELECT JSON_QUERY('{"c":[{"d":6},{"d":5}]}', '$.c[?(@.d == 5)].d') AS sl FROM (VALUES (1)) AS v(x);
SELECT JSON_VALUE('{"c":[1,2,3]}', '$.c.length()') AS a, JSON_VALUE('{"c":[1,2,3]}', '$.c.sum()') AS b, JSON_VALUE('{"c":[1,2,3]}', '$.c.max()') AS c, JSON_QUERY('{"c":{"a":1}}', '$.c.keys()') AS d FROM (VALUES (1)) AS v(x);
SELECT JSON_STRING(1) AS a, JSON_STRING('q"x') AS b, JSON_STRING(1.50) AS c, JSON_STRING(CAST(2 AS DOUBLE)) AS d, JSON_STRING(TRUE) AS e, JSON_STRING(CAST(NULL AS INT)) AS f, JSON_STRING(ARRAY[1, 2]) AS g, JSON_STRING(MAP['b', 1, 'a', 2]) AS h, JSON_STRING(ROW(1, 'x')) AS i, JSON_STRING(TIMESTAMP '2024-01-02 03:04:05.678') AS l FROM (VALUES (1)) AS v(x);
SELECT JSON_STRING(x'0102') AS n, JSON_STRING(TO_TIMESTAMP_LTZ(0, 3)) AS z, JSON_STRING(CAST(1.5 AS FLOAT)) AS f, JSON_STRING(CAST(1e20 AS DOUBLE)) AS g, JSON_STRING(CAST('NaN' AS DOUBLE)) AS na, JSON_STRING(CAST(1 AS TINYINT)) AS t, JSON_STRING(TIMESTAMP '2024-01-02 03:04:05.678901') AS k6, JSON_STRING(TIMESTAMP '2024-01-02 03:04:00') AS k0, JSON_STRING(1.000) AS m, JSON_STRING(0.00000001) AS sm, JSON_STRING(CAST(NULL AS ROW<a INT, b ROW<c STRING>>)) AS r, JSON_STRING(CAST(ROW(1, ROW('x')) AS ROW<z INT, b ROW<c STRING>>)) AS r2 FROM (VALUES (1)) AS v(x);
SELECT JSON_STRING(TIME '01:02:03') AS m FROM (VALUES (1)) AS v(x);
SELECT JSON_STRING(MAP[1, 1]) AS m FROM (VALUES (1)) AS v(x);
SELECT JSON_STRING(INTERVAL '1' DAY) AS o FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT('d' VALUE DATE '2024-01-02') AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT('d' VALUE TIME '01:02:03') AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT('d' VALUE INTERVAL '1' DAY) AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT(x VALUE 1) AS a FROM (VALUES ('a')) AS v(x);
SELECT PARSE_JSON(x)['k']['z'] AS f, PARSE_JSON(x)['q'] AS q, PARSE_JSON('[5,6]')[1] AS g FROM (VALUES ('{"k":{"z":7}}')) AS v(x);
