CREATE TABLE n (id INT, xs ARRAY<INT>) WITH ('connector' = 'changelog', 'data' = '');
EXPLAIN CHANGELOG_MODE SELECT id, x FROM n CROSS JOIN UNNEST(xs) AS t(x);
