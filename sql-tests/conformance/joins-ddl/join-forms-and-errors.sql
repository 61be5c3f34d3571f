-- compare: folded
-- about: spellings of joins and the ones that are refused
CREATE TABLE a (id INT, x STRING) WITH ('connector'='changelog', 'data'='
@1 +I|1|a1
@1 +I|2|a2
@3 -D|2|a2
');
CREATE TABLE b (id INT, y STRING) WITH ('connector'='changelog', 'data'='
@2 +I|1|b1
@2 +I|3|b3
');
SELECT * FROM a JOIN b ON a.id = b.id;
SELECT * FROM a JOIN b USING (id);
SELECT * FROM a NATURAL JOIN b;
SELECT * FROM a LEFT OUTER JOIN b ON a.id = b.id;
SELECT * FROM a FULL JOIN b USING (id);
SELECT * FROM a NATURAL FULL OUTER JOIN b;
SELECT * FROM a CROSS JOIN b;
SELECT * FROM a CROSS JOIN b ON a.id = b.id;
SELECT * FROM a JOIN b;
SELECT * FROM a, b WHERE a.id = b.id;
SELECT id FROM a JOIN b ON a.id = b.id;
SELECT id FROM a JOIN b USING (id);
SELECT a.id, b.id FROM a JOIN b USING (id);
SELECT * FROM a JOIN b USING (nope);
SELECT * FROM a JOIN b ON a.id = b.nope;
SELECT * FROM a JOIN b ON a.id = b.y;
SELECT * FROM a JOIN b ON a.x = b.y AND 1 = 1;
SELECT * FROM a JOIN b ON TRUE;
SELECT * FROM a JOIN b ON FALSE;
SELECT * FROM a LEFT JOIN b ON FALSE;
SELECT * FROM a JOIN b ON a.id;
SELECT * FROM a JOIN b ON a.id = b.id AND a.x LIKE 'a%' AND b.y <> 'zz';
SELECT * FROM a JOIN b ON a.id = b.id OR a.id = 2;
SELECT * FROM a JOIN b ON a.id = b.id JOIN a AS c ON c.id = b.id;
SELECT * FROM a JOIN a ON a.id = a.id;
SELECT * FROM a AS p JOIN a AS q ON p.id = q.id;
SELECT * FROM a LEFT SEMI JOIN b ON a.id = b.id;
SELECT * FROM a SEMI JOIN b ON a.id = b.id;
SELECT * FROM a ANTI JOIN b ON a.id = b.id;
SELECT * FROM a WHERE id IN (SELECT id FROM b);
SELECT * FROM a WHERE id NOT IN (SELECT id FROM b);
SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id);
SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.id);
SELECT * FROM a WHERE id = (SELECT MAX(id) FROM b);
SELECT * FROM a WHERE id > ALL (SELECT id FROM b);
SELECT * FROM a WHERE id = ANY (SELECT id FROM b);
SELECT * FROM a WHERE id = SOME (SELECT id FROM b);
SELECT * FROM a WHERE (id, x) IN (SELECT id, y FROM b);
SELECT * FROM a WHERE id IN (SELECT id, y FROM b);
SELECT x, (SELECT COUNT(*) FROM b WHERE b.id = a.id) AS n FROM a;
SELECT x, (SELECT y FROM b WHERE b.id = a.id) AS n FROM a;
SELECT * FROM a WHERE id IN (1, 2, NULL);
SELECT * FROM a WHERE id IN (SELECT id FROM b) OR id = 2;
SELECT * FROM a JOIN LATERAL (SELECT y FROM b WHERE b.id = a.id) AS l ON TRUE;
SELECT * FROM a, LATERAL (SELECT y FROM b WHERE b.id = a.id);
SELECT * FROM a CROSS APPLY b;
SELECT * FROM a ASOF JOIN b MATCH_CONDITION (a.id >= b.id) ON a.id = b.id;
SELECT * FROM a TABLESAMPLE BERNOULLI (50);
