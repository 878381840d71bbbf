#include "store/thin.h"

typedef unsigned __int128 wide;

/* splitmix64. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t thin_seed(uint64_t seed, uint64_t number)
{
	return draw(&seed) ^ number;
}

void thin_weights(uint64_t *weights, size_t n, size_t most, uint64_t seed)
{
	wide total = 0, passed = 0, point = 0, size = 0;
	size_t piece = 0;

	for (size_t i = 0; i < n; i++)
		total += weights[i];
	for (size_t i = 0; i < n; i++) {
		wide kept = 0;

		passed += weights[i];
		while (piece < most) {
			if (!size) {
				wide from = total * piece / most;

				size = total * (piece + 1) / most - from;
				point = from + (size * (draw(&seed) >> 32) >> 32);
			}
			if (point >= passed)
				break;
			kept += size;
			size = 0;
			piece++;
		}
		weights[i] = kept > UINT64_MAX ? UINT64_MAX : (uint64_t)kept;
	}
}
