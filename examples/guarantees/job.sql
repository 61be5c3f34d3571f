SET 'execution.checkpointing.mode' = 'MODE';
SET 'execution.checkpointing.interval' = '500 ms';
SET 'execution.checkpointing.dir' = 'DIR/checkpoints';

CREATE TABLE numbers (n BIGINT) WITH (
  'connector' = 'datagen', 'rows-per-second' = '500',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '5000'
);

CREATE TABLE written (n BIGINT) WITH (
  'connector' = 'filesystem', 'path' = 'DIR/out', 'format' = 'csv',
  'sink.delivery-guarantee' = 'SINK',
  'sink.rolling-policy.rollover-interval' = '50 ms', 'sink.rolling-policy.check-interval' = '10 ms'
);

INSERT INTO written SELECT n FROM numbers;
