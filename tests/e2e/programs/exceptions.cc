/*
 * C++ with namespaces, templates and exceptions: about three quarters of the CPU time in
 * geometry::Mesh<double>::smooth(int), one quarter in geometry::detail::parse(unsigned int), which
 * throws every now and then. Usage: exceptions SECONDS
 */
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <vector>

namespace
{
double cpu_seconds()
{
	timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
} // namespace

namespace geometry
{
template <typename T> class Mesh
{
	std::vector<T> points;

      public:
	explicit Mesh(std::size_t n) : points(n, T(1))
	{
	}

	__attribute__((noinline)) T smooth(int rounds)
	{
		T sum = 0;
		for (int r = 0; r < rounds; r++)
			for (std::size_t i = 1; i + 1 < points.size(); i++) {
				points[i] = (points[i - 1] + points[i] * 2 + points[i + 1]) / 4;
				sum += points[i];
			}
		return sum;
	}
};

namespace detail
{
__attribute__((noinline)) unsigned parse(unsigned x)
{
	for (int i = 0; i < 100000; i++)
		__asm__ volatile("imul $5, %0, %0" : "+r"(x));
	if (x % 64 == 1)
		throw std::runtime_error("unlucky");
	return x;
}
} // namespace detail
} // namespace geometry

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, sum = 0;
	geometry::Mesh<double> mesh(1000);
	unsigned caught = 0;
	for (double stop = cpu_seconds() + seconds; cpu_seconds() < stop;) {
		double end = cpu_seconds() + 0.030;
		while (cpu_seconds() < end)
			sum += mesh.smooth(10);
		end = cpu_seconds() + 0.010;
		for (unsigned i = 1; cpu_seconds() < end; i++) {
			try {
				sum += geometry::detail::parse(i);
			} catch (const std::runtime_error &) {
				caught++;
			}
		}
	}
	return sum < 0 && caught == 0;
}
