# Dictionaries, objects with methods and a recursive search; more than a little of each.
def queens(n, row=0, columns=0, up=0, down=0):
    if row == n:
        return 1
    return sum(queens(n, row + 1, columns | 1 << i, up | 1 << (row + i), down | 1 << (row - i + n))
               for i in range(n)
               if not (columns >> i & 1 or up >> (row + i) & 1 or down >> (row - i + n) & 1))


class Point:
    __slots__ = ("x", "v")

    def __init__(self, x, v):
        self.x, self.v = x, v

    def move(self):
        self.x += self.v


points = [Point(i, i % 7) for i in range(1480)]
for _ in range(22):
    for p in points:
        p.move()
sums = {}
for i in range(50000):
    sums[i * 7919 % 8009] = sums.get(i * 7919 % 8009, 0) + i
print(queens(7), sum(p.x for p in points), len(sums))
