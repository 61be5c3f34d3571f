-- Debezium's changes of a table become the table: the last row of every key, in a compacted topic.
CREATE TABLE changes (id INT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'kafka', 'topic' = 'customers-cdc', 'format' = 'debezium-json',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'
);

CREATE TABLE customers (id INT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'customers',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json'
);

INSERT INTO customers SELECT id, name, city FROM changes;
