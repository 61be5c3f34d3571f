-- Orders in windows of ten seconds, written in transactions: once, whatever happens.
SET 'execution.checkpointing.interval' = '1 s';
SET 'execution.checkpointing.dir' = '/tmp/ebbflow-checkpoints';

CREATE TABLE orders (
  id INT, customer INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'format' = 'json',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.group.id' = 'windows', 'properties.auto.offset.reset' = 'earliest',
  'scan.watermark.idle-timeout' = '2 s'
);

CREATE TABLE order_windows (window_start TIMESTAMP(3), orders BIGINT, total DECIMAL(38, 2)) WITH (
  'connector' = 'kafka', 'topic' = 'order-windows', 'format' = 'json',
  'properties.bootstrap.servers' = 'localhost:9092',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'order-windows'
);

INSERT INTO order_windows
SELECT window_start, COUNT(*), SUM(price)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;
