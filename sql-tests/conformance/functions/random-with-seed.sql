-- compare: exact
-- modes: p1 b1
-- about: RAND and RAND_INTEGER with a seed are those of java.util.Random
SELECT PI() AS p, E() AS e, RAND(1) AS r1, RAND(42) AS r42, RAND_INTEGER(1, 100) AS ri, RAND() < 1.0 AS r0, RAND_INTEGER(5) < 5 AS r5, CHAR_LENGTH(UUID()) AS u FROM (VALUES (1), (2), (3)) AS v(x);
SELECT UUID() IS NULL AS u, RAND(x) AS rx, RAND_INTEGER(x, 10) AS rxi FROM (VALUES (1), (2), (CAST(NULL AS INT))) AS v(x);
