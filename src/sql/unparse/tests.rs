use super::super::parser::FlinkParser;

/// Texts that Flink's DESCRIBE shows for what was written.
#[test]
fn expressions_as_flink_writes_them() {
    for (sql, expected) in [
        (
            "UPPER(CONCAT('#', cast(a AS STRING)))",
            "UPPER(CONCAT('#', CAST(`a` AS STRING)))",
        ),
        (
            "upper(s) || 'it''s' || 'ä'",
            "UPPER(`s`) || 'it''s' || u&'\\00e4'",
        ),
        (
            "CASE WHEN a > 1 THEN 'x' WHEN a = 2 THEN 'y' ELSE NULL END",
            "CASE WHEN `a` > 1 THEN 'x' WHEN `a` = 2 THEN 'y' ELSE NULL END",
        ),
        (
            "CASE a WHEN 1 THEN 'x' END",
            "CASE WHEN `a` = 1 THEN 'x' ELSE NULL END",
        ),
        ("(a + 1) * 2 - (3 - a)", "(`a` + 1) * 2 - (3 - `a`)"),
        ("(a + 1) + 2", "`a` + 1 + 2"),
        (
            "a = 1 AND (b OR b) AND b",
            "`a` = 1 AND (`b` OR `b`) AND `b`",
        ),
        ("-(-a)", "- (- `a`)"),
        ("a BETWEEN 1 AND 2", "`a` BETWEEN ASYMMETRIC 1 AND 2"),
        ("a NOT IN (1, 2)", "`a` NOT IN (1, 2)"),
        ("extract(day from ts)", "EXTRACT(DAY FROM `ts`)"),
        ("FLOOR(ts TO DAY)", "FLOOR(`ts` TO DAY)"),
        ("TIMESTAMPADD(DAY, 1, ts)", "TIMESTAMPADD(DAY, 1, `ts`)"),
        ("TRIM(s)", "TRIM(BOTH ' ' FROM `s`)"),
        ("arr[1]", "`arr`[1]"),
        ("r.y.z", "`r`.`y`.`z`"),
        (
            "`we ird` IS NOT NULL AND NOT b OR b IS TRUE",
            "`we ird` IS NOT NULL AND NOT `b` OR `b` IS TRUE",
        ),
        ("ARRAY[1, a]", "ARRAY[1, `a`]"),
        ("(a, 1)", "ROW(`a`, 1)"),
        ("INTERVAL '1' DAY + ts", "INTERVAL '1' DAY + `ts`"),
        (
            "ts - INTERVAL '5.001' SECOND(3)",
            "`ts` - INTERVAL '5.001' SECOND(3)",
        ),
        ("IF(a > 1, 1.50, 2e0)", "IF(`a` > 1, 1.50, 2E0)"),
        ("to_timestamp_ltz(a, 3)", "`to_timestamp_ltz`(`a`, 3)"),
        ("PROCTIME()", "PROCTIME()"),
        ("current_timestamp", "CURRENT_TIMESTAMP"),
        (
            "JSON_VALUE(s, '$.a' RETURNING INT)",
            "JSON_VALUE(`s`, '$.a' RETURNING INTEGER)",
        ),
        (
            "JSON_QUERY(s, '$')",
            "JSON_QUERY(`s`, '$' WITHOUT ARRAY WRAPPER NULL ON EMPTY NULL ON ERROR)",
        ),
        ("X'4a'", "X'4A'"),
        ("s IS JSON OBJECT", "`s` IS JSON OBJECT"),
        (
            "CAST(a AS ROW<x INT, y ARRAY<INT>>)",
            "CAST(`a` AS ROW< `x` INTEGER, `y` ARRAY< INTEGER > >)",
        ),
        ("NOT (a > 1 OR b)", "NOT (`a` > 1 OR `b`)"),
        ("s NOT LIKE 'x'", "`s` NOT LIKE 'x'"),
        ("a IS NULL IS NOT TRUE", "(`a` IS NULL) IS NOT TRUE"),
        (
            "ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) = 1",
            "(ROW_NUMBER() OVER (PARTITION BY `a` ORDER BY `b` DESC)) = 1",
        ),
        ("YEAR(ts)", "EXTRACT(YEAR FROM `ts`)"),
        ("NULLIF(a, 1)", "CASE WHEN `a` = 1 THEN NULL ELSE `a` END"),
        ("15e2", "1.5E3"),
        ("1.50e1", "1.50E1"),
        (".5", "0.5"),
        ("007", "7"),
    ] {
        let ast = FlinkParser::parse_expr(sql).expect(sql);
        let text = super::expr(&ast);
        assert_eq!(text, expected, "{sql}");
        let again = FlinkParser::parse_expr(&text).expect(&text);
        assert_eq!(super::expr(&again), text, "{sql}");
    }
}

#[test]
fn queries_as_flink_writes_them() {
    for (sql, expected) in [
        (
            "select a, count(*) c from t x where a > 1 group by a having count(*) > 1 order by c desc limit 3 offset 1",
            "SELECT `a`, COUNT(*) AS `c`\nFROM `t` AS `x`\nWHERE `a` > 1\nGROUP BY `a`\nHAVING COUNT(*) > 1\nORDER BY `c` DESC\nOFFSET 1 ROWS\nFETCH NEXT 3 ROWS ONLY",
        ),
        (
            "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(x, y)",
            "SELECT *\nFROM (VALUES ROW(1, 'a'),\nROW(2, 'b')) AS `t` (`x`, `y`)",
        ),
        (
            "SELECT a FROM t LEFT JOIN u ON t.a = u.a, v UNION ALL SELECT 1",
            "SELECT `a`\nFROM `t`\nLEFT JOIN `u` ON `t`.`a` = `u`.`a`,\n`v`\nUNION ALL\nSELECT 1",
        ),
        (
            "SELECT * FROM TABLE(SESSION(TABLE t PARTITION BY (a, b), DESCRIPTOR(ts), INTERVAL '1' MINUTE))",
            "SELECT *\nFROM TABLE(SESSION(TABLE `t` PARTITION BY (`a`, `b`), DESCRIPTOR(`ts`), INTERVAL '1' MINUTE))",
        ),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts MEASURES LAST(A.x) AS l AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+? C{2,3}) WITHIN INTERVAL '1' HOUR DEFINE A AS A.x > 1) AS m",
            "SELECT *\nFROM `t` MATCH_RECOGNIZE(\nPARTITION BY `a`\nORDER BY `ts`\nMEASURES LAST(`A`.`x`, 0) AS `l`\nAFTER MATCH SKIP TO NEXT ROW\nPATTERN (`A` `B` + ? `C` { 2, 3 }) WITHIN INTERVAL '1' HOUR\nDEFINE `A` AS `A`.`x` > 1) AS `m`",
        ),
    ] {
        let ast = FlinkParser::parse_query(sql).expect(sql);
        let text = super::query(&ast);
        assert_eq!(text, expected);
        let again = FlinkParser::parse_query(&text).expect(&text);
        assert_eq!(super::query(&again), text);
    }
}
