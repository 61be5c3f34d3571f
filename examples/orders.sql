-- Revenue per customer, kept up to date while orders are placed, changed and cancelled.
CREATE TABLE orders (
  order_id INT,
  customer STRING,
  amount   DECIMAL(10, 2),
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH ('connector' = 'changelog', 'changelog-mode' = 'I,UA,D', 'data' = '
+I|1|alice|30.00
+I|2|bob|12.50
+I|3|alice|20.00
+U|2|bob|15.00
-D|3|alice|20.00
+I|4|carol|99.90
');

CREATE VIEW revenue AS
SELECT customer, COUNT(*) AS orders, SUM(amount) AS total
FROM orders
GROUP BY customer;

-- every change of the result
SELECT * FROM revenue;

-- the two best customers
SELECT customer, total FROM revenue ORDER BY total DESC LIMIT 2;
