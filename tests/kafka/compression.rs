//! Topics with compressed records: what Java has compressed is read, and the other way round.

use crate::broker::{Broker, lines};
use crate::cluster::run;
use crate::tables::{BOUNDED, cluster, print, printed, table};

const ALL: [&str; 4] = ["gzip", "snappy", "lz4", "zstd"];

pub fn every_compression(broker: &Broker) {
    let cluster = cluster(broker);
    for compression in ALL {
        let topic = format!("java-{compression}");
        cluster.create_topic(&topic, 1);
        let records = (0..200).map(|i| format!("{{\"i\": {i}, \"text\": \"again and again\"}}"));
        let options = ["--compression-codec", compression];
        broker.produce_with_java(&topic, &options, records);
        assert_eq!(broker.compression(&topic), compression);

        let source = table(broker, "t", "i INT, text STRING", &topic, BOUNDED);
        let rows = printed(&print(
            &source,
            "i INT, text STRING",
            "SELECT i, text FROM t",
        ));
        let mut expected: Vec<String> = (0..200)
            .map(|i| format!("+I[{i}, again and again]"))
            .collect();
        expected.sort();
        assert_eq!(rows, expected, "{compression}");

        let copy = format!("ours-{compression}");
        cluster.create_topic(&copy, 1);
        let option = format!(", 'properties.compression.type' = '{compression}'");
        let sink = table(broker, "o", "i INT, text STRING", &copy, &option);
        run(&format!(
            "{source}{sink}INSERT INTO o SELECT i, text FROM t;"
        ))
        .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(broker.compression(&copy), compression);
    }
    let consumed = broker
        .tool("consumer.ConsoleConsumer")
        .args(["--include", "ours-.*", "--from-beginning"])
        .args(["--timeout-ms", "60000", "--max-messages", "800"])
        .output()
        .expect("java runs");
    let mut values = lines(&consumed);
    values.sort();
    let mut expected: Vec<String> = (0..800)
        .map(|i| format!("{{\"i\":{},\"text\":\"again and again\"}}", i / 4))
        .collect();
    expected.sort();
    assert_eq!(values, expected);
}
