/*
 * Blocks of code, one a line in hexadecimal, on standard input; on standard output for each block
 * that LLVM decodes and llvm-mca can run on every chip: the block and the cycles of one
 * iteration in steady state by llvm-mca (its library, with the options that it has by default),
 * in the order of the chips.
 *
 *	build/models/blocks FILE... | build/models/mca > answers
 */
#include "machine.h"

#include <cstdio>
#include <iostream>
#include <sstream>

static bool from_hex(const std::string &line, std::vector<uint8_t> &code)
{
	for (size_t i = 0; i + 1 < line.size(); i += 2)
		code.push_back(uint8_t(strtoul(line.substr(i, 2).c_str(), nullptr, 16)));
	return !code.empty();
}

/* Iterations 101 to 300: how the pipeline fills does not count. */
static double cycles_of(machine &m, const std::vector<uint8_t> &code)
{
	std::vector<std::unique_ptr<llvm::mca::Instruction>> body;

	for (size_t at = 0; at < code.size();) {
		llvm::MCInst inst;
		unsigned length = m.decode(llvm::ArrayRef<uint8_t>(code).slice(at), inst);
		auto made = length ? m.build(inst) : nullptr;

		if (!made)
			return -1;
		body.push_back(std::move(made));
		at += length;
	}
	unsigned before = m.simulate(body, 100), after = m.simulate(body, 300);
	return before && after ? (after - before) / 200.0 : -1;
}

int main()
{
	std::vector<std::unique_ptr<machine>> machines;
	std::string line;

	for (const chip &c : chips)
		machines.push_back(std::make_unique<machine>(c));
	while (std::getline(std::cin, line)) {
		std::vector<uint8_t> code;
		std::ostringstream out;

		if (!from_hex(line, code))
			continue;
		out << line;
		for (auto &m : machines)
			out << " " << cycles_of(*m, code);
		std::cout << out.str() << "\n";
	}
	return 0;
}
