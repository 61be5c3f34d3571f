-- compare: exact
-- about: Every function on text over CHAR, VARCHAR and STRING: case, trimming, padding, searching, splitting, PRINTF
CREATE TABLE t (id INT, s STRING, c CHAR(4), v VARCHAR(5), n INT, p STRING, b BIGINT) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|Hello World|abcd|xyz|2|l|2
+I|2|ßtraße İi ŉ ǆ|ab  |éa|0|ß|0
+I|3||    ||-1||-1
+I|4|日本語😀|日本  |😀|1|😀|1
+I|5|\N|\N|\N|\N|\N|\N
+I|6| tab	x |a|  z  |300|x|353
+I|7|o''neil mc-donald 2nd_one|wxyz|ABC|97|o|-97
');
SELECT id, UPPER(s) AS us, UPPER(c) AS uc, UPPER(v) AS uv, LOWER(s) AS ls, LOWER(c) AS lc, INITCAP(s) AS ini, INITCAP(c) AS inc, REVERSE(s) AS rs, REVERSE(c) AS rc, REVERSE(v) AS rv FROM t;
SELECT id, CHAR_LENGTH(s) AS l1, CHARACTER_LENGTH(c) AS l2, ASCII(s) AS a, ASCII(v) AS av, CHR(b) AS cb, CHR(n) AS cn FROM t;
SELECT id, TRIM(s) AS ts, TRIM(c) AS tc, TRIM(v) AS tv, LTRIM(s) AS lt, RTRIM(c) AS rt, BTRIM(v) AS bt, TRIM(BOTH p FROM s) AS tp, BTRIM(s, p) AS bp, LTRIM(c, p) AS lp, RTRIM(v, p) AS rp FROM t;
SELECT id, LPAD(c, 6, '*') AS l, RPAD(v, n, p) AS r, LPAD(s, 3, '') AS le FROM t WHERE id < 6;
SELECT id, OVERLAY(c PLACING 'XY' FROM 2) AS o, OVERLAY(s PLACING p FROM n FOR 2) AS o2, OVERLAY(s PLACING p FROM 100) AS o3, OVERLAY(s PLACING p FROM -1) AS om, OVERLAY(s PLACING 'Q' FROM 2 FOR -1) AS on1, OVERLAY(s PLACING 'Q' FROM 2 FOR 100) AS o100 FROM t;
SELECT id, SUBSTRING(c FROM 2) AS s1, SUBSTRING(c FROM 2 FOR 2) AS s2, SUBSTR(v, 2) AS s3, SUBSTR(v, -2, 1) AS s4, SUBSTRING(s, n, 2) AS sn, `LEFT`(c, 2) AS l, `RIGHT`(v, 2) AS r, SUBSTRING(s, 2147483647, 2147483647) AS big FROM t;
SELECT id, POSITION(p IN s) AS po, POSITION('a' IN c) AS pc, LOCATE(p, s, n) AS lo, INSTR(s, p) AS i1, INSTR(s, 'l', 1) AS i2, INSTR(s, 'l', 1, 2) AS i3, INSTR(s, 'l', -1) AS i4 FROM t;
SELECT id, INSTR(s, 'l', -1, 2) AS i5, INSTR(s, 'l', 0) AS i6, INSTR(s, 'l', 1, 0) AS i7 FROM t;
SELECT id, CONCAT(c, v) AS cv, CONCAT(s, c, v) AS scv, CONCAT_WS('-', c, v) AS cw, CONCAT_WS(p, s) AS c1, STARTSWITH(c, 'a') AS st, ENDSWITH(s, p) AS en FROM t;
SELECT id, SPLIT_INDEX(s, ' ', n) AS si, SPLIT_INDEX(s, p, 0) AS sp, SPLIT_INDEX(s, '', 0) AS se, SPLIT_INDEX(s, 32, 1) AS s32, SPLIT_INDEX(s, 'lo', 1) AS lo FROM t;
SELECT id, STR_TO_MAP(s, ' ', 'l') AS m1, STR_TO_MAP('a=1,b,c=,=d,e=f=g') AS m2, STR_TO_MAP('a1b22c', '[0-9]', 'x') AS m3 FROM t;
SELECT id, PRINTF('%s|%10s|%-6s|%d|%x|%X|%o|%c', c, v, s, n, n, n, n, 'z') AS p1 FROM t WHERE id = 1;
SELECT id, PRINTF('%s %S %h %b %n|%5.2f|%e|%g', s, s, 'hi', TRUE, 3.14159, 12345.678, 0.00012) AS p2 FROM t WHERE id IN (1,5);
SELECT id, PRINTF('%d %s', s, n) AS p3, PRINTF(s) AS p4, PRINTF('%s') AS p5, PRINTF('%2$s %1$s', 'a', 'b') AS p6, PRINTF('%,d %+d %(d % d %08.3f %,.2f', 1234567, 5, -5, 5, 3.5, 1234567.891) AS p7 FROM t;
SELECT id, IS_ALPHA(s) AS ia, IS_ALPHA(c) AS ic, IS_DECIMAL(s) AS idc, IS_DIGIT(s) AS idg, IS_DIGIT(c) AS x FROM t;
SELECT IS_ALPHA(x) AS a, IS_DECIMAL(x) AS d, IS_DIGIT(x) AS g FROM (VALUES ('abc'), ('12'), ('1.5'), ('-1.5'), ('1e5'), (''), (' 1'), ('é'), ('٣'), ('+3'), ('.5'), ('5.'), ('1_0'), ('NaN'), ('a1'), ('0x1F')) AS v(x);
SELECT IS_ALPHA(1) AS a, IS_DECIMAL(1) AS d, IS_DIGIT(1) AS g FROM (VALUES (1)) AS v(x);
SELECT TRANSLATE(CAST(NULL AS STRING), 'a', 'b') AS a, TRANSLATE('aéb', 'éa', '😀') AS b, TRANSLATE3('abc', 'a', 'b') AS c FROM (VALUES (1)) AS v(x);
SELECT REPEAT('ab', 3) AS r, CONCAT('a', 'bcd') AS c, 'a' || 'bc' AS op, REPLACE('abc', 'b', 'xx') AS rp, SUBSTRING('abcdef' FROM 2 FOR 3) AS su, LPAD('a', 5, 'xy') AS lp, OVERLAY('abcdef' PLACING 'XX' FROM 2) AS ov, SPLIT_INDEX('a,b', ',', 0) AS si, REVERSE('abc') AS rv, INITCAP('ab cd') AS ini, CHR(65) AS ch, TRIM('  x ') AS tr, CONCAT_WS(',', 'a', 'b') AS cw, ELT(1, 'a', 'bb') AS el FROM (VALUES (1)) AS v(x);
SELECT TRANSLATE('abc', CAST(NULL AS STRING), 'x') AS a, TRANSLATE('abc', 'a', CAST(NULL AS STRING)) AS b, SPLIT('a,b', CAST(NULL AS STRING)) AS c, CONCAT_WS('-') AS d FROM (VALUES (1)) AS v(x);
SELECT PRINTF('%s|%10s|%-6s|%d|%x|%X|%o', 'a', 'b', 'c', 10, 255, 255, 8) AS a, PRINTF('%b %B %n|%5.2f|%e', TRUE, FALSE, CAST(3.14159 AS DOUBLE), CAST(12345.678 AS DOUBLE)) AS b, PRINTF('%5.2f', 3.14159) AS c, PRINTF('%s', 1.50) AS d, PRINTF('%,d %+d %(d % d', 1234567, 5, -5, 5) AS e, PRINTF('%08.3f %,.2f', CAST(3.5 AS DOUBLE), CAST(1234567.891 AS DOUBLE)) AS f, PRINTF('%s %s', CAST(1 AS DOUBLE), CAST(1.5 AS FLOAT)) AS g, PRINTF('%g %.3g', CAST(0.00012 AS DOUBLE), CAST(123456 AS DOUBLE)) AS h, PRINTF('%S', 'straße') AS i, PRINTF('%x', -1) AS j, PRINTF('%x', CAST(-1 AS BIGINT)) AS k, PRINTF('%c', 65) AS l, PRINTF('%d', CAST(-5 AS TINYINT)) AS m FROM (VALUES (1)) AS v(x);
