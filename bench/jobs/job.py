# Dictionaries, objects with methods and a recursive search.
def queens(n):
    found = 0

    def place(row, columns, up, down):
        nonlocal found
        if row == n:
            found += 1
            return
        for i in range(n):
            if not (columns >> i & 1 or up >> (row + i) & 1 or down >> (row - i + n) & 1):
                place(row + 1, columns | 1 << i, up | 1 << (row + i), down | 1 << (row - i + n))

    place(0, 0, 0, 0)
    return found


class Point:
    __slots__ = ("x", "v")

    def __init__(self, x):
        self.x, self.v = x, 1.0

    def step(self):
        self.v -= 0.01 * self.x
        self.x += 0.01 * self.v


counts, seed = {}, 42
for i in range(700_000):
    seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    key = (seed >> 8) % 50_000
    counts[key] = counts.get(key, 0) + i
points = [Point(i * 0.1) for i in range(1000)]
for _ in range(500):
    for p in points:
        p.step()
print(queens(7), sum(counts.values()) % 1000003, "%.6f" % sum(p.x for p in points))
