-- A thousand orders, each a second after the one before, as JSON in the topic 'orders'.
CREATE TABLE numbers (n INT) WITH (
  'connector' = 'datagen', 'fields.n.kind' = 'sequence',
  'fields.n.start' = '0', 'fields.n.end' = '999'
);

CREATE TABLE orders (id INT, customer INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'format' = 'json',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'key.fields' = 'customer'
);

INSERT INTO orders
SELECT n, MOD(n, 7), CAST(MOD(n * 37, 1000) AS DECIMAL(10, 2)) / 10,
  TIMESTAMPADD(SECOND, n, TIMESTAMP '2024-01-01 00:00:00')
FROM numbers;
