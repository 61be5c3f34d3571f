//! Smoke tests against librdkafka's own mock of a cluster, inside this process. What it cannot do
//! (transactions that mean something) is tested against a real broker.

use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};

use super::*;
use crate::changelog::ChangeBatch;
use crate::connectors::pushdown::{FieldPath, PushedScan};
use crate::connectors::testing::{batch, drain, lines, schema, table};
use crate::connectors::{SourcePoll, SourceReader, SplitPosition};

type Mock = MockCluster<'static, DefaultProducerContext>;

fn mock(topic: &str, partitions: i32) -> Mock {
    let mock = MockCluster::new(1).unwrap();
    mock.create_topic(topic, partitions, 1).unwrap();
    mock
}

/// Key and value of a record.
type Pair<'a> = (Option<&'a str>, Option<&'a str>);

fn produce(mock: &Mock, topic: &str, partition: i32, records: &[Pair<'_>]) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", mock.bootstrap_servers())
        .create()
        .unwrap();
    for (key, value) in records {
        let mut record: BaseRecord<'_, str, str> = BaseRecord::to(topic).partition(partition);
        record.key = *key;
        record.payload = *value;
        producer.send(record).map_err(|(e, _)| e).unwrap();
    }
    producer.flush(std::time::Duration::from_secs(30)).unwrap();
}

/// A table of topic `t` that is read from its beginning to its end.
fn bounded(mock: &Mock, columns: &str, options: &[(&str, &str)]) -> TableDescription {
    let servers = mock.bootstrap_servers();
    let mut all = vec![
        ("connector", "kafka"),
        ("topic", "t"),
        ("properties.bootstrap.servers", servers.as_str()),
        ("scan.bounded.mode", "latest-offset"),
    ];
    all.extend(options);
    table(columns, &all)
}

const JSON: [(&str, &str); 2] = [("format", "json"), ("scan.startup.mode", "earliest-offset")];

fn write(sink: &dyn TableSink, rows: &ChangeBatch) -> Result<()> {
    let writers = sink.writers()?;
    let mut writer = writers.create(0, 1)?;
    writer.write(rows)?;
    writer.end()?;
    for committable in writer.pre_commit(1)? {
        writers.commit(&committable)?;
    }
    Ok(())
}

#[test]
fn what_a_sink_writes_a_source_reads() {
    let mock = mock("t", 3);
    let t = bounded(&mock, "k STRING, v INT", &JSON);
    let data = "+I|a|1\n+I|b|2\n+I|c|3";
    let sink = KafkaConnector.sink(&t).unwrap();
    write(sink.as_ref(), &batch("k STRING, v INT", data)).unwrap();
    let mut rows = drain(KafkaConnector.source(&t).unwrap().as_ref(), &t).unwrap();
    rows.sort();
    assert_eq!(rows, ["+I[a, 1]", "+I[b, 2]", "+I[c, 3]"]);
}

/// Reads to the end: rows as they print, and the positions.
fn read_all(
    reader: &mut dyn SourceReader,
    columns: &str,
    max_rows: usize,
) -> (Vec<String>, Vec<SplitPosition>) {
    let mut rows = Vec::new();
    loop {
        match reader.poll(max_rows).unwrap() {
            SourcePoll::Batch(batch) => rows.extend(lines(&batch, &schema(columns))),
            SourcePoll::End => return (rows, reader.positions()),
            SourcePoll::Pending(wait) => std::thread::sleep(wait),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn subtasks_share_the_partitions_and_go_on_at_another_parallelism() {
    let mock = mock("t", 4);
    for partition in 0..4 {
        let values: Vec<String> = (0..5)
            .map(|i| format!("{{\"i\": {}}}", partition * 10 + i))
            .collect();
        let values: Vec<Pair<'_>> = values.iter().map(|v| (None, Some(v.as_str()))).collect();
        produce(&mock, "t", partition, &values);
    }
    let t = bounded(&mock, "i INT", &JSON);
    let source = KafkaConnector.source(&t).unwrap();
    let readers = source.readers(&[0]).unwrap();
    let mut first = readers.create(0, 2, &[]).unwrap();
    let mut second = readers.create(1, 2, &[]).unwrap();
    let mut all = Vec::new();
    while all.len() < 3 {
        match first.poll(3).unwrap() {
            SourcePoll::Batch(batch) => all.extend(lines(&batch, &schema("i INT"))),
            SourcePoll::Pending(wait) => std::thread::sleep(wait),
            other => panic!("{other:?}"),
        }
    }
    let (rows, mut positions) = read_all(second.as_mut(), "i INT", 100);
    assert_eq!(rows.len(), 10);
    all.extend(rows);
    positions.extend(first.positions());
    let (rest, _) = read_all(
        readers.create(0, 1, &positions).unwrap().as_mut(),
        "i INT",
        100,
    );
    all.extend(rest);
    all.sort();
    let mut expected: Vec<String> = (0..4)
        .flat_map(|p| (0..5).map(move |i| format!("+I[{}]", p * 10 + i)))
        .collect();
    expected.sort();
    assert_eq!(all, expected);
}

#[test]
fn single_fields_of_rows_are_read() {
    let mock = mock("t", 1);
    let records = [
        r#"{"id": 1, "r": {"a": 5, "b": "no time", "c": {"d": "y", "e": 7}}}"#,
        r#"{"id": 2, "r": null}"#,
        r#"{"id": 3, "r": {"c": null, "a": 6}}"#,
    ];
    produce(&mock, "t", 0, &records.map(|r| (None, Some(r))));
    let columns = "id INT, r ROW<a INT, b TIMESTAMP(3), c ROW<d STRING, e INT>>";
    let t = bounded(&mock, columns, &JSON);
    let source = KafkaConnector.source(&t).unwrap();
    let row = FieldPath::column(1);
    let e = row.clone().field(2).field(1);
    let fields = "e INT, id INT, a INT";
    let scan = PushedScan {
        schema: schema(fields).to_arrow(),
        fields: vec![e, FieldPath::column(0), row.clone().field(0)],
        filter: None,
    };
    let pushdown = source.pushdown().unwrap();
    let mut reader = pushdown.readers(&scan).unwrap().create(0, 1, &[]).unwrap();
    let (rows, _) = read_all(reader.as_mut(), fields, 100);
    assert_eq!(rows, ["+I[7, 1, 5]", "+I[null, 2, null]", "+I[null, 3, 6]"]);
    // The whole row is asked for too: what does not fit is noticed.
    let scan = PushedScan {
        schema: schema("e INT, r ROW<a INT, b TIMESTAMP(3), c ROW<d STRING, e INT>>").to_arrow(),
        fields: vec![scan.fields[0].clone(), row],
        filter: None,
    };
    let mut reader = pushdown.readers(&scan).unwrap().create(0, 1, &[]).unwrap();
    let failed = loop {
        match reader.poll(100) {
            Err(e) => break e.to_string(),
            Ok(SourcePoll::Pending(wait)) => std::thread::sleep(wait),
            Ok(other) => panic!("{other:?}"),
        }
    };
    assert!(failed.contains("no time"), "{failed}");
    let csv = [("format", "csv"), ("scan.startup.mode", "earliest-offset")];
    let by_place = KafkaConnector
        .source(&bounded(&mock, "r ROW<a INT, b INT>", &csv))
        .unwrap();
    assert!(by_place.pushdown().is_none());
}

#[test]
fn a_bad_record_is_named() {
    let mock = mock("t", 1);
    produce(
        &mock,
        "t",
        0,
        &[(None, Some("{\"i\": 1}")), (None, Some("{oops"))],
    );
    let t = bounded(&mock, "i INT", &JSON);
    let error = drain(KafkaConnector.source(&t).unwrap().as_ref(), &t).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("topic 't', partition 0, offset 1"), "{text}");
    assert!(
        error
            .hint_text()
            .unwrap()
            .contains("scan.dead-letter.topic")
    );
}

#[test]
fn the_key_and_its_tombstones() {
    let mock = mock("t", 1);
    let records = [
        (Some("1"), Some("{\"v\": \"a\"}")),
        (Some("2"), Some("{\"v\": \"b\"}")),
        (Some("1"), None),
        (None, Some("{\"v\": \"no key\"}")),
    ];
    produce(&mock, "t", 0, &records);
    let options = [
        ("connector", "upsert-kafka"),
        ("key.format", "csv"),
        ("value.format", "json"),
        ("value.fields-include", "EXCEPT_KEY"),
    ];
    let mut t = bounded(&mock, "v STRING, k INT", &options);
    t.primary_key = vec![1];
    let source = UpsertKafkaConnector.source(&t).unwrap();
    assert_eq!(source.changelog_mode().to_string(), "UA,D");
    let rows = drain(source.as_ref(), &t).unwrap();
    assert_eq!(rows, ["+U[a, 1]", "+U[b, 2]", "-D[null, 1]"]);
    let data = "+I|x|7\n+U|y|7\n-D|y|7";
    let sink = UpsertKafkaConnector.sink(&t).unwrap();
    write(sink.as_ref(), &batch("v STRING, k INT", data)).unwrap();
    let rows = drain(UpsertKafkaConnector.source(&t).unwrap().as_ref(), &t).unwrap();
    assert_eq!(rows[3..], ["+U[x, 7]", "+U[y, 7]", "-D[null, 7]"]);
}

#[test]
fn options_are_checked() {
    let options = [
        ("connector", "kafka"),
        ("topic", "t"),
        ("properties.bootstrap.servers", "localhost:1"),
        ("format", "json"),
        ("scan.startup.mode", "earliest-offset"),
    ];
    let refused = |change: &[(&str, &str)], expected: &str| {
        let mut all: Vec<_> = options
            .into_iter()
            .filter(|(k, _)| change.iter().all(|(c, _)| c != k))
            .collect();
        all.extend(change.iter().filter(|(_, v)| !v.is_empty()));
        let error = KafkaConnector.source(&table("i INT", &all)).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    };
    refused(&[("scan.startup.mod", "x")], "scan.startup.mod");
    refused(&[("topic", "")], "Either 'topic' or 'topic-pattern'");
    refused(&[("topic-pattern", "x")], "shouldn't be set together");
    refused(
        &[("properties.bootstrap.servers", "")],
        "properties.bootstrap.servers",
    );
    refused(&[("format", "")], "format");
    refused(&[("properties.group.idd", "x")], "'properties.group.idd'");
    refused(&[("scan.startup.mode", "timestamp")], "timestamp-millis");
    refused(
        &[("scan.startup.mode", "group-offsets")],
        "properties.group.id",
    );
    refused(
        &[
            ("scan.bounded.mode", "specific-offsets"),
            ("scan.bounded.specific-offsets", "0:1"),
        ],
        "partition:0,offset:42",
    );
    refused(
        &[("json.ignore-parse-error", "x")],
        "json.ignore-parse-error",
    );
    let sink = |change: &[(&str, &str)]| {
        let mut all = options.to_vec();
        all.extend(change);
        KafkaConnector.sink(&table("i INT", &all)).map(|_| ())
    };
    sink(&[]).unwrap();
    let error = sink(&[("sink.delivery-guarantee", "exactly-once")]).unwrap_err();
    assert!(
        error.to_string().contains("sink.transactional-id-prefix"),
        "{error}"
    );
    assert!(sink(&[("sink.partitioner", "org.example.Mine")]).is_err());
    let mut keyed = table("i INT", &options);
    keyed.primary_key = vec![0];
    assert!(KafkaConnector.source(&keyed).is_err());
    let upsert = [
        ("topic", "t"),
        ("properties.bootstrap.servers", "localhost:1"),
        ("key.format", "json"),
        ("value.format", "debezium-json"),
    ];
    let mut keyed = table("i INT", &upsert);
    assert!(UpsertKafkaConnector.source(&keyed).is_err(), "no key");
    keyed.primary_key = vec![0];
    let error = UpsertKafkaConnector.source(&keyed).unwrap_err();
    assert!(error.to_string().contains("insert-only"), "{error}");
}

#[test]
fn a_cluster_that_does_not_answer_is_an_error() {
    let options = [
        ("connector", "kafka"),
        ("topic", "t"),
        ("properties.bootstrap.servers", "127.0.0.1:1"),
        ("properties.default.api.timeout.ms", "500"),
        ("format", "json"),
        ("scan.startup.mode", "earliest-offset"),
    ];
    let source = KafkaConnector.source(&table("i INT", &options)).unwrap();
    let Err(error) = source.readers(&[0]).unwrap().create(0, 1, &[]) else {
        panic!("there is no such cluster");
    };
    assert!(error.to_string().contains("topic 't'"), "{error}");
}
