-- compare: exact
-- about: Functions on numbers of every type, with their result types
CREATE TABLE t (id INT, ti TINYINT, si SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(10, 3), big DECIMAL(38, 0)) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|1|2|3|4|1.5|2.5|12.345|5
+I|2|-128|-32768|-2147483648|-9223372036854775808|-1.5|-2.5|-12.345|-99999999999999999999999999999999999999
+I|3|0|0|0|0|0|0|0|0
+I|4|127|32767|2147483647|9223372036854775807|1e30|1e300|9999999.999|99999999999999999999999999999999999999
+I|5|\N|\N|\N|\N|\N|\N|\N|\N
+I|6|5|50|500|5000|0.1|-0.0|0.001|1
');
SELECT id, CEIL(ti) AS c1, FLOOR(f) AS ff, CEIL(f) AS cf, CEIL(m) AS cm, FLOOR(m) AS fm, CEIL(big) AS cb FROM t;
SELECT id, ROUND(ti) AS r1, ROUND(si, -1) AS r2, ROUND(i, -2) AS r3, ROUND(l, -3) AS r4, ROUND(f, 1) AS rf, ROUND(f) AS rf0, ROUND(m, 1) AS rm1, ROUND(m, 5) AS rm5, ROUND(big, -2) AS rb FROM t;
SELECT id, ROUND(m, i) AS xm FROM t WHERE id IN (1,3,5,6);
SELECT id, EXP(ti) AS e, EXP(m) AS em, LN(d) AS ln, LOG10(d) AS l10, LOG2(m) AS l2, LOG(m) AS lg, LOG(2, l) AS lb, LOG(d, m) AS ldm FROM t;
SELECT id, SQRT(m) AS sq, POWER(m, 2) AS p2, POWER(d, m) AS pdm, POWER(i, i) AS pii, SQRT(i) AS si, POWER(2, 0.5) AS ph FROM t;
SELECT id, DEGREES(d) AS dg, DEGREES(m) AS dm, RADIANS(i) AS rd, HEX(l) AS hl, HEX('AbcÜ') AS hs, HEX(CAST(id AS STRING)) AS hc, BIN(l) AS bl, BIN(ti) AS bt FROM t;
SELECT id, UNHEX(HEX(l)) AS u, UNHEX('F') AS u1, UNHEX('zz') AS uz, UNHEX('') AS ue, UNHEX('4a4B') AS u2 FROM t WHERE id < 3;
SELECT id, MOD(i, 7) AS m1, MOD(l, i) AS m2, MOD(m, 2) AS m3, MOD(i, m) AS m4, MOD(ti, si) AS m5 FROM t WHERE id IN (1, 5, 6, 2);
SELECT MOD(5, 0) AS x FROM (VALUES (1)) AS v(x);
SELECT LN(-1) AS a FROM (VALUES (1)) AS v(x);
SELECT LN(0) AS a FROM (VALUES (1)) AS v(x);
SELECT LOG10(-1) AS a, LOG2(-8) AS b FROM (VALUES (1)) AS v(x);
SELECT SQRT(-1) AS a, ACOS(2) AS b, POWER(-8, 1.0/3) AS c, POWER(0, -1) AS d, EXP(1000) AS e, LOG10(1000) AS f, LOG2(8) AS g, LOG(10, 1000) AS h FROM (VALUES (1)) AS v(x);
SELECT ABS(-5) AS a, ABS(-1.50) AS b, CEIL(1.2) AS c, FLOOR(-1.2) AS d, ROUND(2.5) AS e, ROUND(-2.55, 1) AS f, ROUND(125, -1) AS g, TRUNCATE(2.567, 2) AS h, SIGN(-2.5) AS i, ROUND(1.005, 2) AS j, ROUND(CAST(1.005 AS DOUBLE), 2) AS k, ROUND(99.99, 1) AS l, HEX(255) AS m, HEX(-1) AS n, BIN(-5) AS o FROM (VALUES (1)) AS v(x);
SELECT SQRT('4') AS s FROM (VALUES (1)) AS v(x);
SELECT HEX(1.5) AS s FROM (VALUES (1)) AS v(x);
SELECT HEX(x'01ff') AS s FROM (VALUES (1)) AS v(x);
SELECT ABS(INTERVAL '-1' DAY) AS a FROM (VALUES (1)) AS v(x);
SELECT GREATEST(ARRAY[1], ARRAY[2]) AS g FROM (VALUES (1)) AS v(x);
SELECT IFNULL(x, 5) AS a, IFNULL(x, 1.5) AS b, IF(x > 1, 'a', 'bcd') AS c, IFNULL('a', 'bcd') AS d, COALESCE(x, 2.5) AS e, NULLIF(x, 1) AS f, IF(x > 1, x, 2.5) AS g, IFNULL(1, x) AS h FROM (VALUES (1), (2), (CAST(NULL AS INT))) AS v(x);
