# Another input for Python: classes, generators, comprehensions, big numbers, exceptions.
import functools, heapq, json, re


class Shape:
	def __init__(self, a, b):
		self.a, self.b = a, b

	def area(self):
		return self.a * self.b


class Round(Shape):
	def area(self):
		return 3 * super().area()


def primes(n):
	known = []
	for i in range(2, n):
		if all(i % p for p in known if p * p <= i):
			known.append(i)
			yield i


@functools.lru_cache(None)
def ways(n, k):
	return 1 if n == 0 else sum(ways(n - i, i) for i in range(1, min(n, k) + 1))


def attempt(i):
	try:
		return [1, 2, 3][i % 5]
	except IndexError:
		return -1


shapes = [(Round if i % 3 else Shape)(i, i % 11) for i in range(60000)]
heap = []
for s in shapes:
	heapq.heappush(heap, (s.area() % 1009, s.a))
text = json.dumps([{"a": s.a, "b": str(s.b)} for s in shapes[:9000]])
found = len(re.findall(r'"b": "(1\d|[2-5])"', text)) + len(json.loads(text))
print(sum(1 for _ in primes(4000)), ways(60, 60), sum(attempt(i) for i in range(150000)), heap[0], found, pow(3, 9001) % 10**9)
