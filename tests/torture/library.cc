// Uses much of libstdc++: streams, regular expressions, containers, exceptions thrown through its
// own frames, threads, futures.
#include <algorithm>
#include <future>
#include <iomanip>
#include <iostream>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

static int thrower(int depth)
{
	if (depth == 0)
		throw std::out_of_range("depth");
	std::string local(depth, 'x'); // is destroyed on the way up
	return thrower(depth - 1) + (int)local.size();
}

static void nested()
{
	try {
		std::vector<int> v{3, 1, 2};
		std::sort(v.begin(), v.end(), [](int a, int b) { return a < b ? true : a > b ? false : thrower(5) < 0; });
		std::cout << v.at(1) << v.at(7) << '\n';
	} catch (const std::out_of_range &) {
		std::throw_with_nested(std::runtime_error("outer"));
	}
}

int main()
{
	std::mt19937 random(1);
	std::map<std::string, std::vector<double>> m;
	std::ostringstream text;
	for (int i = 0; i < 20000; i++)
		m["k" + std::to_string(random() % 500)].push_back(random() / 1e6);
	for (const auto &[key, values] : m)
		text << std::setw(6) << key << std::fixed << std::setprecision(3) << values.front() << '\n';
	const std::string all = text.str();
	std::regex words("k([0-9]+)\\s*([0-9.]+)");
	std::cout << std::distance(std::sregex_iterator(all.begin(), all.end(), words), {}) << ' '
		  << std::hash<std::string>()(all) << '\n';
	for (int i = 0; i < 2000; i++) {
		try {
			i % 2 ? thrower(i % 50) : std::stoi("x");
		} catch (const std::logic_error &e) {
			if (i % 500 < 2)
				std::cout << e.what() << '\n';
		}
	}
	try {
		nested();
	} catch (const std::exception &e) {
		try {
			std::rethrow_if_nested(e);
		} catch (const std::exception &inner) {
			std::cout << e.what() << ": " << inner.what() << '\n';
		}
	}
	auto f = std::async(std::launch::async, [] { return thrower(3); });
	try {
		f.get();
	} catch (const std::exception &e) {
		std::cout << e.what() << std::endl;
	}
	std::istringstream numbers("1 2 3 x");
	numbers.exceptions(std::ios::failbit);
	try {
		for (int n;;) {
			numbers >> n;
			std::cout << n << ' ';
		}
	} catch (const std::ios_base::failure &e) {
		std::cout << e.what() << '\n';
	}
}
