-- compare: exact
-- about: Paths into nested documents, and constructors within constructors
CREATE TABLE j (id INT, s STRING) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|{"store": {"book": [{"t": "A", "p": 8.95, "tags": ["x", "y"]}, {"t": "B", "p": 12, "tags": []}], "open": true}, "x": null, "arr": [1, [2, 3], {"k": "v"}], "e": "", "big": 1e100, "neg": -5}
+I|2|[10, "a", {"b": 1}]
+I|3|"just a string"
+I|4|{"store": 5}
+I|5|{bad json
+I|6|\N
');
SELECT id, JSON_VALUE(s, '$.store.book[0].t') AS a, JSON_VALUE(s, '$.store.book[1].p') AS b, JSON_VALUE(s, '$.store.book[-1].t') AS c, JSON_VALUE(s, '$.store.open') AS d, JSON_VALUE(s, '$.e') AS e, JSON_VALUE(s, '$.big') AS f, JSON_VALUE(s, '$.neg') AS g, JSON_VALUE(s, '$[1]') AS h, JSON_VALUE(s, '$[2].b') AS i FROM j;
SELECT id, JSON_VALUE(s, 'lax $.store.book[0].t' DEFAULT 'none' ON EMPTY) AS a, JSON_VALUE(s, 'strict $.store.nope' DEFAULT 'err' ON ERROR) AS b, JSON_VALUE(s, 'lax $.store' DEFAULT 'empty' ON EMPTY DEFAULT 'error' ON ERROR) AS c, JSON_VALUE(s, 'strict $.store' DEFAULT 'empty' ON EMPTY DEFAULT 'error' ON ERROR) AS d FROM j;
SELECT id, JSON_QUERY(s, '$.store.book[*].t') AS a, JSON_QUERY(s, '$.store.book[0].tags') AS b, JSON_QUERY(s, '$..p') AS c, JSON_QUERY(s, '$.arr[1]') AS d, JSON_QUERY(s, '$.store.book[0]') AS e, JSON_QUERY(s, 'lax $.arr[1:3]') AS f FROM j;
SELECT id, JSON_QUERY(s, '$.x' WITH WRAPPER NULL ON EMPTY EMPTY ARRAY ON ERROR) AS a, JSON_QUERY(s, 'lax $.x' WITH WRAPPER EMPTY OBJECT ON EMPTY) AS b, JSON_QUERY(s, '$.e' WITH CONDITIONAL WRAPPER) AS c, JSON_QUERY(s, '$.store.book[*].p' WITH CONDITIONAL WRAPPER) AS d FROM j;
SELECT id, JSON_EXISTS(s, '$.store') AS a, JSON_EXISTS(s, '$.store.book[5]') AS b, JSON_EXISTS(s, '$.x') AS c, JSON_EXISTS(s, 'lax $.store.book[5]' TRUE ON ERROR) AS d, JSON_EXISTS(s, 'strict $.nope' TRUE ON ERROR) AS e, JSON_EXISTS(s, '$[0]') AS f, JSON_EXISTS(s, 'strict $.nope' UNKNOWN ON ERROR) AS g FROM j;
SELECT id, s IS JSON AS a, s IS JSON OBJECT AS b, s IS JSON ARRAY AS c, s IS JSON SCALAR AS d, s IS NOT JSON OBJECT AS e FROM j;
SELECT id, JSON_QUERY(s, '$.arr' RETURNING ARRAY<STRING>) AS a, JSON_QUERY(s, '$.store.book[0].tags' RETURNING ARRAY<STRING>) AS b, JSON_QUERY(s, '$.nope' RETURNING ARRAY<STRING> EMPTY ARRAY ON ERROR) AS c FROM j;
SELECT JSON_OBJECT('a' VALUE 1, 'b' VALUE JSON_ARRAY(1, 2, JSON_OBJECT('c' VALUE TRUE))) AS a, JSON_OBJECT() AS b, JSON_ARRAY('x', JSON_ARRAY()) AS c, JSON_OBJECT(KEY 'k' VALUE CAST(NULL AS INT) ABSENT ON NULL) AS d, JSON_ARRAY(CAST(NULL AS INT), 1 NULL ON NULL) AS e, JSON_OBJECT('x' VALUE CAST(1.0 AS FLOAT), 'y' VALUE CAST(100 AS DOUBLE), 'z' VALUE CAST(0.1 AS DECIMAL(3, 2))) AS f FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT('a' VALUE JSON_STRING(1)) AS a, JSON_ARRAY(JSON_VALUE('{"a":1}', '$.a'), JSON_QUERY('{"a":[1]}', '$.a')) AS b, JSON_ARRAY(JSON('{"b": 1,  "a": 2}')) AS c, JSON_OBJECT('n' VALUE JSON('null')) AS d FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT('a': 1) AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_OBJECT('a' VALUE ROW(1, 'x'), 'b' VALUE ARRAY['p', 'q'], 'c' VALUE MAP['k', 2]) AS a FROM (VALUES (1)) AS v(x);
SELECT JSON_VALUE('{"a": "\ud83d\ude00 \u0041 \/ \\ \""}', '$.a') AS a, JSON_VALUE('{"a": 1}', '$.a' NULL ON EMPTY ERROR ON ERROR) AS b, JSON_VALUE('{"a": [1,2]}', '$.a[0]') AS c, JSON_VALUE('[]', '$[0]') AS d, JSON_VALUE('{"a b": 1}', '$["a b"]') AS e, JSON_VALUE('{"a-b": 1}', '$.a-b') AS f, JSON_VALUE('{"$x": 1}', '$.$x') AS g, JSON_VALUE('{"": 1}', '$[""]') AS h FROM (VALUES (1)) AS v(x);
SELECT JSON_UNQUOTE('"abc"') AS a, JSON_UNQUOTE('{"a":"b"}') AS b, JSON_UNQUOTE('"a" ') AS c, JSON_UNQUOTE('""') AS d, JSON_UNQUOTE('"\u00fc\t"') AS e, JSON_QUOTE('ü/') AS f FROM (VALUES (1)) AS v(x);
SELECT MAP['a', 1, 'b', 2] AS m, MAP_KEYS(MAP['b', 1, 'a', 2]) AS k, MAP_VALUES(MAP['b', 1, 'a', 2]) AS v, MAP_ENTRIES(MAP['b', 1, 'a', 2]) AS e, MAP_UNION(MAP['x', 1], MAP['y', 2]) AS u, MAP_FROM_ARRAYS(ARRAY[1, 2], ARRAY['a', 'b']) AS f, CARDINALITY(MAP['a', 1, 'b', 2]) AS c FROM (VALUES (1)) AS v(x);
SELECT ARRAY_AGG(x) AS a FROM (VALUES (1), (2)) AS v(x);
SELECT ARRAY_SORT(ARRAY['b', 'a', 'C']) AS a, ARRAY_DISTINCT(ARRAY['a', 'b', 'a']) AS b, ARRAY_JOIN(ARRAY['a', 'b'], ', ') AS c, ARRAY_CONTAINS(ARRAY['a', 'b'], 'b') AS d, ARRAY_POSITION(ARRAY['a', 'b'], 'b') AS e, ARRAY_REMOVE(ARRAY[1, 2, 1], 1) AS f, ARRAY_SLICE(ARRAY['a', 'b', 'c'], -2, -1) AS g, ARRAY_MAX(ARRAY[1, 3, 2]) AS h, ARRAY_REVERSE(ARRAY[1, 2, 3]) AS i, ARRAY_APPEND(ARRAY[1], 2) AS k, ARRAY_PREPEND(ARRAY[1], 0) AS l, ARRAY_CONCAT(ARRAY[1], ARRAY[2], ARRAY[3]) AS m, ARRAY_EXCEPT(ARRAY[1, 2], ARRAY[2]) AS n, ARRAY_INTERSECT(ARRAY[1, 2], ARRAY[2, 3]) AS o, ARRAY_UNION(ARRAY[1, 2], ARRAY[2, 3]) AS p FROM (VALUES (1)) AS v(x);
SELECT ARRAY_CONTAINS(ARRAY[1, NULL], NULL) AS a FROM (VALUES (1)) AS v(x);
SELECT ARRAY_JOIN(ARRAY['a', CAST(NULL AS STRING), 'c'], '|', '?') AS a, ARRAY_JOIN(ARRAY[CAST(NULL AS STRING)], '|') AS b, ARRAY_SORT(ARRAY[DATE '2024-01-02', DATE '2024-01-01'], FALSE) AS c, ARRAY_SORT(ARRAY[1.5, 1.25]) AS d FROM (VALUES (1)) AS v(x);
SELECT PARSE_URL('http://u:p@h.org:81/a/../b?x=1&y=%20#f', 'PATH') AS a, PARSE_URL('http://h.org/p?x=1&y=2', 'QUERY', 'y') AS b, PARSE_URL('http://h.org', 'path') AS c, PARSE_URL('http://h.org/p?a.b=1&axb=2', 'QUERY', 'a.b') AS d, PARSE_URL('http://h.org/p?x', 'QUERY', 'x') AS e FROM (VALUES (1)) AS v(x);
SELECT PRINTF('%s is %d years, %.1f%%', 'Bob', 42, CAST(99.5 AS DOUBLE)) AS a, PRINTF('%-5s|%5s|', 'ab', 'cd') AS b, PRINTF('%x %o %e', 255, 8, CAST(12345.678 AS DOUBLE)) AS c, PRINTF('no args') AS d, PRINTF('%b', TRUE) AS e, PRINTF('%s', CAST(NULL AS INT)) AS f, PRINTF('%10.3f|', CAST(3.14159 AS DOUBLE)) AS g, PRINTF('%,d', CAST(1234567 AS BIGINT)) AS h, PRINTF('%08d', -42) AS i FROM (VALUES (1)) AS v(x);
