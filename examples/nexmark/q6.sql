-- The average of a seller's last winning prices. Flink refuses it: its OVER with a frame of rows takes
-- no updates. Here the frame counts the rows of the table as it is now.
CREATE TABLE nexmark_q6 (
  seller BIGINT,
  avg_price BIGINT
) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q6
SELECT
  Q.seller,
  AVG(Q.price) OVER
    (PARTITION BY Q.seller ORDER BY Q.`dateTime` ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id, seller ORDER BY price DESC) AS rownum
  FROM (
    SELECT A.id, A.seller, B.price, B.`dateTime`
    FROM auction AS A, bid AS B
    WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  )
) AS Q
WHERE Q.rownum <= 1;
