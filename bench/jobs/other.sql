-- Another input for sqlite3: updates, deletes, windows, triggers, JSON-like text, a view.
PRAGMA journal_mode = OFF;
CREATE TABLE u(id INTEGER PRIMARY KEY, k TEXT, v REAL, g INT);
CREATE TABLE log(id INT, was REAL);
CREATE TRIGGER note AFTER UPDATE OF v ON u WHEN old.g = 3 BEGIN INSERT INTO log VALUES(old.id, old.v); END;
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 60000)
INSERT INTO u SELECT i, 'key' || (i * 7919 % 60013), i * 0.37, i % 17 FROM r;
CREATE UNIQUE INDEX uk ON u(k);
UPDATE u SET v = v * 1.5 + length(k) WHERE g IN (3, 5, 7);
DELETE FROM u WHERE id % 9 = 4 AND k GLOB 'key*2';
CREATE VIEW totals AS SELECT g, sum(v) AS s, avg(v) AS a FROM u GROUP BY g;
SELECT g, round(s, 2), rank() OVER (ORDER BY a DESC) FROM totals;
SELECT count(*) FROM (SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id ROWS 5 PRECEDING) AS w FROM u) WHERE w > 9000;
SELECT count(*) FROM u a WHERE EXISTS (SELECT 1 FROM u b WHERE b.k = 'key' || (a.id * 3 % 60013));
SELECT group_concat(DISTINCT substr(k, 4, 2)) FROM u WHERE id < 3000;
SELECT count(*), max(was) FROM log;
