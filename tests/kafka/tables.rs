//! Tables as sources and sinks.

use std::time::Duration;

use crate::broker::{Broker, lines};
use crate::cluster::{Cluster, Engine, WAIT, run};

pub fn cluster(broker: &Broker) -> Cluster {
    Cluster {
        address: broker.address(),
    }
}

/// `CREATE TABLE` of a topic.
pub fn table(broker: &Broker, name: &str, columns: &str, topic: &str, options: &str) -> String {
    format!(
        "CREATE TABLE {name} ({columns}) WITH ('connector' = 'kafka', 'topic' = '{topic}', \
         'properties.bootstrap.servers' = '{}', 'format' = 'json' {options});\n",
        broker.address()
    )
}

pub const BOUNDED: &str =
    ", 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'";

/// The rows that a script prints, sorted.
pub fn printed(script: &str) -> Vec<String> {
    let out = run(script).unwrap_or_else(|e| panic!("{e}"));
    let rows = out.lines().filter(|l| {
        ["+I[", "-U[", "+U[", "-D["]
            .iter()
            .any(|k| l.starts_with(k))
    });
    let mut rows: Vec<String> = rows.map(str::to_string).collect();
    rows.sort();
    rows
}

/// A script that prints what `query` gives.
pub fn print(tables: &str, columns: &str, query: &str) -> String {
    format!(
        "{tables} CREATE TABLE printed ({columns}) WITH ('connector' = 'print');\n\
         INSERT INTO printed {query};\n"
    )
}

pub fn java_clients(broker: &Broker) {
    cluster(broker).create_topic("from-java", 2);
    cluster(broker).create_topic("to-java", 2);
    let records = (0..20).map(|i| format!("{{\"id\": {i}, \"price\": {i}.5}}"));
    broker.produce_with_java("from-java", &[], records);
    let columns = "id INT, price DECIMAL(10, 2)";
    let script = table(broker, "orders", columns, "from-java", BOUNDED)
        + &table(broker, "copies", columns, "to-java", "")
        + "INSERT INTO copies SELECT id, price * 2 FROM orders;";
    run(&script).unwrap_or_else(|e| panic!("{e}"));
    let consumed = broker
        .tool("consumer.ConsoleConsumer")
        .args([
            "--topic",
            "to-java",
            "--from-beginning",
            "--timeout-ms",
            "60000",
        ])
        .args(["--max-messages", "20"])
        .output()
        .expect("java runs");
    let mut values = lines(&consumed);
    values.sort();
    let mut expected: Vec<String> = (0..20)
        .map(|i| format!("{{\"id\":{i},\"price\":{}}}", 2 * i + 1))
        .collect();
    expected.sort();
    assert_eq!(values, expected);
}

pub fn places(broker: &Broker) {
    let cluster = cluster(broker);
    cluster.create_topic("places", 1);
    let values: Vec<String> = (0..10).map(|i| format!("{{\"i\": {i}}}")).collect();
    cluster.produce("places", values.iter().map(|v| (0, None, Some(v.as_str()))));
    let read = |options: &str| {
        let t = table(broker, "t", "i INT", "places", options);
        printed(&print(&t, "i INT", "SELECT i FROM t")).len()
    };
    assert_eq!(read(BOUNDED), 10);
    let specific = ", 'scan.startup.mode' = 'specific-offsets', \
                    'scan.startup.specific-offsets' = 'partition:0,offset:3', \
                    'scan.bounded.mode' = 'specific-offsets', \
                    'scan.bounded.specific-offsets' = 'partition:0,offset:8'";
    assert_eq!(read(specific), 5);
    let future = ", 'scan.startup.mode' = 'timestamp', \
                  'scan.startup.timestamp-millis' = '99999999999999', \
                  'scan.bounded.mode' = 'latest-offset'";
    assert_eq!(read(future), 0);
    let past = ", 'scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '1', \
                'scan.bounded.mode' = 'timestamp', \
                'scan.bounded.timestamp-millis' = '99999999999999'";
    assert_eq!(read(past), 10);
    let latest = ", 'scan.startup.mode' = 'latest-offset', 'scan.bounded.mode' = 'latest-offset'";
    assert_eq!(read(latest), 0);
    let refused = |options: &str, expected: &str| {
        let t = table(broker, "t", "i INT", "places", options);
        let error = run(&print(&t, "i INT", "SELECT i FROM t")).expect_err("it is refused");
        assert!(error.contains(expected), "{error}");
    };
    refused("", "properties.group.id");
    let group = ", 'properties.group.id' = 'nobody', 'scan.bounded.mode' = 'latest-offset'";
    refused(group, "no committed offset");
    let t = table(broker, "t", "i INT", "no-such-topic", BOUNDED);
    let error = run(&print(&t, "i INT", "SELECT i FROM t")).expect_err("there is no topic");
    assert!(error.contains("'no-such-topic' does not exist"), "{error}");
}

pub fn keys_and_metadata(broker: &Broker) {
    let cluster = cluster(broker);
    cluster.create_topic("keyed", 1);
    let columns = "k_id INT, v STRING, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', \
                   h MAP<STRING, BYTES> METADATA FROM 'headers', \
                   p INT METADATA FROM 'partition' VIRTUAL, `off` BIGINT METADATA FROM 'offset' VIRTUAL, \
                   topic STRING METADATA VIRTUAL, kind STRING METADATA FROM 'timestamp-type' VIRTUAL";
    let options = format!(
        "{BOUNDED}, 'key.format' = 'json', 'key.fields' = 'k_id', 'key.fields-prefix' = 'k_', \
         'value.fields-include' = 'EXCEPT_KEY'"
    );
    let t = table(broker, "t", columns, "keyed", &options);
    let write = "INSERT INTO t SELECT 7, 'x', TO_TIMESTAMP_LTZ(1500, 3), \
                 MAP['a', CAST('b' AS BYTES)];";
    run(&format!("{t}{write}")).unwrap_or_else(|e| panic!("{e}"));
    let read = cluster.read_all("keyed", "read_uncommitted");
    assert_eq!(read[0].key.as_deref(), Some("{\"id\":7}"));
    assert_eq!(read[0].value.as_deref(), Some("{\"v\":\"x\"}"));
    cluster.produce("keyed", [(0, None, Some("{\"v\": \"no key\"}"))]);
    let out = "k INT, v STRING, ts BIGINT, h STRING, p INT, o BIGINT, topic STRING, kind STRING";
    let query = "SELECT k_id, v, CASE WHEN k_id = 7 THEN UNIX_TIMESTAMP(CAST(ts AS STRING)) END, \
                 CAST(h['a'] AS STRING), p, `off`, topic, kind FROM t";
    assert_eq!(
        printed(&print(&t, out, query)),
        [
            "+I[7, x, 1, b, 0, 0, keyed, CreateTime]",
            "+I[null, no key, null, null, 0, 1, keyed, CreateTime]"
        ]
    );
}

pub fn bad_records(broker: &Broker) {
    let cluster = cluster(broker);
    cluster.create_topic("bad", 1);
    cluster.create_topic("dead", 1);
    let good = (0, None, Some("{\"i\": 1}"));
    cluster.produce("bad", [good, (0, Some("k"), Some("{\"i\": oops}")), good]);
    let read = |options: &str| {
        let t = table(broker, "t", "i INT", "bad", &format!("{BOUNDED}{options}"));
        run(&print(&t, "i INT", "SELECT i FROM t"))
    };
    let error = read("").expect_err("the record is bad");
    assert!(
        error.contains("topic 'bad', partition 0, offset 1"),
        "{error}"
    );
    let skipped = read(", 'json.ignore-parse-errors' = 'true'").expect("it is skipped");
    assert_eq!(skipped.matches("+I[1]").count(), 2, "{skipped}");
    let kept = read(", 'scan.dead-letter.topic' = 'dead'").expect("it is kept");
    assert_eq!(kept.matches("+I[1]").count(), 2, "{kept}");
    let dead = cluster.read_all("dead", "read_committed");
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].key.as_deref(), Some("k"));
    assert_eq!(dead[0].value.as_deref(), Some("{\"i\": oops}"));
}

pub fn upserts(broker: &Broker) {
    let cluster = cluster(broker);
    cluster.create_topic("upserts", 2);
    cluster.create_topic("changes", 1);
    let changes = [
        r#"{"before": null, "after": {"k": "a", "v": 1}, "op": "c"}"#,
        r#"{"before": null, "after": {"k": "b", "v": 2}, "op": "c"}"#,
        r#"{"before": {"k": "a", "v": 1}, "after": {"k": "a", "v": 3}, "op": "u"}"#,
        r#"{"before": {"k": "b", "v": 2}, "after": null, "op": "d"}"#,
        r#"{"before": null, "after": {"k": "c", "v": 4}, "op": "c"}"#,
    ];
    cluster.produce("changes", changes.map(|c| (0, None, Some(c))));
    let source = table(
        broker,
        "changes",
        "k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED",
        "changes",
        BOUNDED,
    )
    .replace("'format' = 'json'", "'format' = 'debezium-json'");
    let upsert = |columns: &str, options: &str| {
        format!(
            "CREATE TABLE latest ({columns}, PRIMARY KEY (k) NOT ENFORCED) WITH \
             ('connector' = 'upsert-kafka', 'topic' = 'upserts', 'key.format' = 'raw', \
             'value.format' = 'json', 'properties.bootstrap.servers' = '{}'{options});\n",
            broker.address()
        )
    };
    let bounded = ", 'scan.bounded.mode' = 'latest-offset'";
    let script = format!(
        "{source}{}INSERT INTO latest SELECT k, v FROM changes;",
        upsert("k STRING, v INT", "")
    );
    run(&script).unwrap_or_else(|e| panic!("{e}"));
    let read = cluster.read_all("upserts", "read_committed");
    let of_b: Vec<_> = read
        .iter()
        .filter(|r| r.key.as_deref() == Some("b"))
        .collect();
    assert_eq!(of_b.len(), 2);
    assert_eq!(of_b[1].value, None, "a tombstone");
    let sum = print(
        &upsert("k STRING, v INT", bounded),
        "n BIGINT, s INT",
        "SELECT COUNT(*), SUM(v) FROM latest",
    );
    // What is left in the end, whatever order the partitions come in.
    let rows = printed(&sum);
    assert!(rows.contains(&"+U[2, 7]".to_string()), "{rows:?}");
    let changelog = printed(&print(
        &upsert("k STRING, v INT", bounded),
        "k STRING, v INT",
        "SELECT k, v FROM latest WHERE k = 'b'",
    ));
    assert_eq!(changelog, ["+I[b, 2]", "-D[b, 2]"]);
    let folded = upsert(
        "k STRING, v INT",
        ", 'sink.buffer-flush.max-rows' = '1000', 'sink.buffer-flush.interval' = '10 min'",
    )
    .replace("'upserts'", "'folded'");
    cluster.create_topic("folded", 1);
    run(&format!(
        "{source}{folded}INSERT INTO latest SELECT k, v FROM changes;"
    ))
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        cluster.read_all("folded", "read_committed").len(),
        3,
        "one a key"
    );
}

pub fn windows_by_partition(broker: &Broker) {
    let cluster = cluster(broker);
    cluster.create_topic("clicks", 3);
    // Partition 0 is far ahead of partition 1; partition 2 is empty.
    let value = |s: u32| {
        let ts = format!("\"2024-01-01 00:00:{s:02}\"");
        format!("{{\"ts\": {ts}, \"r\": {{\"other\": \"x\", \"ts\": {ts}}}}}")
    };
    let values: Vec<(i32, String)> = [(0, 1), (0, 11), (0, 21), (1, 2), (1, 12), (1, 22)]
        .map(|(p, s)| (p, value(s)))
        .to_vec();
    cluster.produce(
        "clicks",
        values.iter().map(|(p, v)| (*p, None, Some(v.as_str()))),
    );
    let columns = "ts TIMESTAMP(3), WATERMARK FOR ts AS ts";
    let bounded = table(broker, "clicks", columns, "clicks", BOUNDED);
    let query = "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), \
                 INTERVAL '10' SECOND)) GROUP BY window_start, window_end";
    let expected = [
        "+I[2024-01-01T00:00, 2]",
        "+I[2024-01-01T00:00:10, 2]",
        "+I[2024-01-01T00:00:20, 2]",
    ];
    // No row is late, though the partitions are read one after the other; be the time a column or a
    // field of a row.
    let inside = "r ROW<other STRING, ts TIMESTAMP(3)>, ts AS r.ts, WATERMARK FOR ts AS ts";
    let inside = table(broker, "clicks", inside, "clicks", BOUNDED);
    for (parallelism, clicks) in [(1, &bounded), (2, &bounded), (1, &inside), (2, &inside)] {
        let script = print(clicks, "w TIMESTAMP(3), n BIGINT", query);
        let script = format!("SET 'parallelism.default' = '{parallelism}';\n{script}");
        assert_eq!(printed(&script), expected);
    }
    // Without an end the empty partition must become idle.
    let endless = ", 'scan.startup.mode' = 'earliest-offset', \
                   'scan.watermark.idle-timeout' = '500 ms'";
    cluster.create_topic("windows", 1);
    let script = table(broker, "clicks", columns, "clicks", endless)
        + &table(broker, "windows", "w TIMESTAMP(3), n BIGINT", "windows", "")
        + "INSERT INTO windows "
        + query
        + ";";
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Engine::start(folder.path(), &script);
    cluster.wait_for("windows", 2, WAIT);
    engine.kill();
}

pub fn new_partitions(broker: &Broker) {
    let cluster = cluster(broker);
    cluster.create_topic("growing", 1);
    cluster.create_topic("grown", 1);
    let options = ", 'scan.startup.mode' = 'latest-offset', \
                   'scan.topic-partition-discovery.interval' = '200 ms'";
    let script = "SET 'parallelism.default' = '2';\n".to_string()
        + &table(broker, "t", "i INT", "growing", options)
        + &table(broker, "o", "i INT", "grown", "")
        + "INSERT INTO o SELECT i FROM t;";
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Engine::start(folder.path(), &script);
    let end = std::time::Instant::now() + WAIT;
    let mut sent = 0;
    while cluster.read_all("grown", "read_committed").is_empty() {
        assert!(std::time::Instant::now() < end, "the job does not start");
        cluster.produce("growing", [(0, None, Some("{\"i\": 0}"))]);
        sent += 1;
        std::thread::sleep(Duration::from_millis(300));
    }
    let before = cluster.read_all("grown", "read_committed").len();
    assert!(before <= sent);
    cluster.set_partitions("growing", 3);
    cluster.produce(
        "growing",
        (0..4).map(|i| (1 + i % 2, None, Some("{\"i\": 1}"))),
    );
    let end = std::time::Instant::now() + WAIT;
    let of_new = || {
        let values = cluster.values("grown");
        values.iter().filter(|v| v.contains('1')).count()
    };
    while of_new() < 4 {
        assert!(
            std::time::Instant::now() < end,
            "new partitions are not read"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    engine.kill();
}
