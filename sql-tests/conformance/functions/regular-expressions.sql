-- compare: exact
-- about: Functions with regular expressions: empty matches, groups, malformed patterns, classes, flags and anchors of Java
CREATE TABLE t (id INT, s STRING, r STRING, n INT) WITH ('connector'='changelog', 'changelog-mode'='I', 'data'='
+I|1|foobarbaz|ba(.)|1
+I|2|aaa|a*|0
+I|3||x*|0
+I|4|éa😀éa|é(.)|1
+I|5|\N|a|0
+I|6|abc|\N|0
+I|7|abc|(unclosed|0
+I|8|a.b.c|.|2
+I|9|2024-01-02|(\d+)-(\d+)|2
+I|10|xyz|(q)?z|1
');
SELECT id, REGEXP(s, r) AS re, REGEXP_REPLACE(s, r, 'X') AS rr, REGEXP_REPLACE(s, r, '$1') AS rg, REGEXP_COUNT(s, r) AS c, REGEXP_INSTR(s, r) AS i, REGEXP_SUBSTR(s, r) AS su FROM t;
SELECT id, REGEXP_EXTRACT(s, r) AS e0, REGEXP_EXTRACT(s, r, 0) AS e00, REGEXP_EXTRACT(s, r, n) AS en, REGEXP_EXTRACT_ALL(s, r, 0) AS ea0, REGEXP_EXTRACT_ALL(s, r, n) AS ean FROM t;
SELECT id, REGEXP_EXTRACT_ALL(s, r) AS ea FROM t;
SELECT id, REGEXP_EXTRACT(s, r, 5) AS e5, REGEXP_EXTRACT(s, r, -1) AS em, REGEXP_EXTRACT_ALL(s, r, 5) AS ea5 FROM t;
SELECT REGEXP_REPLACE('abc', 'b', '\0$0') AS a, REGEXP_REPLACE('aXbX', '(?i)x', '-') AS b, REGEXP_EXTRACT('a1b2', '([a-z])(\d)', 2) AS c, REGEXP('ABC', '(?i)b') AS d, REGEXP('a', '') AS e, REGEXP('', '') AS f, REGEXP_COUNT('', '') AS g, REGEXP_REPLACE('foobar', '(?<=foo)bar', 'X') AS h, REGEXP_REPLACE('aabb', '(a)\1', 'X') AS i, REGEXP_EXTRACT('aaa', 'a++') AS j FROM (VALUES (1)) AS v(x);
SELECT REGEXP('abc', '(') AS a FROM (VALUES (1)) AS v(x);
SELECT REGEXP_EXTRACT('abc', '(') AS a FROM (VALUES (1)) AS v(x);
SELECT REGEXP_COUNT('abc', '(') AS a, REGEXP_SUBSTR('abc', '(') AS b, REGEXP_INSTR('abc', '(') AS c, REGEXP_EXTRACT_ALL('abc', '(') AS d FROM (VALUES (1)) AS v(x);
SELECT REGEXP_EXTRACT('élan vital', '\w+') AS a, REGEXP_EXTRACT('élan', '\p{L}+') AS b, REGEXP_EXTRACT('٣4', '\d') AS c, REGEXP('a b', 'a\sb') AS d, REGEXP(U&'a\00a0b', 'a\sb') AS e, REGEXP_EXTRACT('a[b', '[\[]') AS f, REGEXP_EXTRACT('abc-def', '[a-z&&[^b]]+') AS g, REGEXP_EXTRACT('x\y', '\Q\\E') AS h, REGEXP_EXTRACT('foo', '\p{Lower}+') AS i, REGEXP_EXTRACT('foo1', '\p{Alpha}+') AS j, REGEXP_EXTRACT('ab]c', '[^]]+') AS k FROM (VALUES (1)) AS v(x);
SELECT REGEXP_EXTRACT('foobar', '(?<nm>o+)b', 1) AS a, REGEXP_EXTRACT('line1
line2', '^line2$') AS b, REGEXP_EXTRACT('line1
line2', '(?m)^line2$') AS c, REGEXP_EXTRACT('a
b', 'a.b') AS d, REGEXP_EXTRACT('a
b', '(?s)a.b') AS e, REGEXP_EXTRACT('aé', 'É') AS f, REGEXP_EXTRACT('aé', '(?i)É') AS g, REGEXP_EXTRACT('aé', '(?iu)É') AS h, REGEXP('foo', 'foo$') AS i, REGEXP_EXTRACT('a b', '(?x) a \  b') AS j, REGEXP_EXTRACT('abc', '[a-c]{2,}?') AS k, REGEXP_EXTRACT('ab', '\x61\u0062') AS l FROM (VALUES (1)) AS v(x);
