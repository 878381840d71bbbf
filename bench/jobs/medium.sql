-- A table with two indexes, a join, a grouping and a scan; more than a little of each.
PRAGMA journal_mode = OFF;
CREATE TABLE t(a INTEGER PRIMARY KEY, b INT, c TEXT);
WITH RECURSIVE r(i, s) AS (
	SELECT 1, 42 UNION ALL SELECT i + 1, (s * 1103515245 + 12345) % 2147483648 FROM r WHERE i < 11500)
INSERT INTO t SELECT i, (s >> 8) % 2887, printf('%08x-%d', s, i % 97) FROM r;
CREATE INDEX tb ON t(b);
CREATE INDEX tc ON t(c);
SELECT count(*), sum(x.a) FROM t x JOIN t y ON x.b = y.b AND y.a < 1150;
SELECT b % 100, count(DISTINCT c), max(c) FROM t GROUP BY 1 ORDER BY 2 DESC LIMIT 5;
SELECT count(*) FROM t WHERE c LIKE '%7f%3';
