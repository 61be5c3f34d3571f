-- A script as it runs in production: orders from Kafka, revenue per customer into a database.

CREATE TABLE orders (
  id BIGINT,
  customer STRING,
  amount DECIMAL(10, 2),
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = 'broker:9092',
  'format' = 'json'
);

CREATE TABLE revenue (
  customer STRING,
  orders BIGINT,
  total DECIMAL(38, 2),
  PRIMARY KEY (customer) NOT ENFORCED
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:postgresql://db/shop',
  'table-name' = 'revenue'
);

INSERT INTO revenue
SELECT customer, COUNT(*), SUM(amount)
FROM orders
WHERE amount > 0
GROUP BY customer;
