EXPLAIN CHANGELOG_MODE SELECT x, y FROM (VALUES (1, 'a'), (2, 'b')) AS t(x, y) WHERE x > 1;
