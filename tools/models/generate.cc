/*
 * Makes src/isa/models/, the machine models' tables, from LLVM's scheduling models. Every encoding
 * of an instruction that Zydis knows is decoded by LLVM too, and described by llvm-mca's own
 * library; what agrees in key (src/isa/model_key.h) and figures becomes one line.
 *
 *	tools/models/build && build/models/generate src/isa/models
 *
 * Says on stderr how many keys had encodings with different figures (those of most encodings
 *count).
 */
#include "machine.h"

#include "isa/model_key.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

using namespace llvm;

namespace
{

/* ---- what LLVM says of one instruction ---- */

struct figures {
	unsigned uops, latency, first[2], rax, rdx, flags;
	int late, late_hidden;
	unsigned is, queues;
	std::vector<std::pair<unsigned, unsigned>>
		uses; /* group, cycles (0x80: all of the group) */

	auto tie() const
	{
		return std::tie(uops, latency, first[0], first[1], rax, rdx, flags, late,
			late_hidden, is, queues, uses);
	}
	bool operator<(const figures &o) const
	{
		return tie() < o.tie();
	}
	bool operator==(const figures &o) const
	{
		return tie() == o.tie();
	}
};

struct unit_group {
	std::string name;
	uint32_t units;
};

/* A chip: its units and the classes found so far. */
struct column {
	machine m;
	std::vector<unit_group> groups; /* by processor resource */
	std::vector<unsigned> queue;    /* sizes */
	std::map<unsigned, unsigned> queue_of;
	std::map<figures, unsigned> classes;
	SmallVector<uint64_t, 64> masks;
	std::map<uint64_t, unsigned> by_mask;

	explicit column(const chip &c) : m(c)
	{
		find_groups();
	}
	void find_groups();
	unsigned class_of(const MCInst &inst, const std::set<std::string> &address);
};

void column::find_groups()
{
	const MCSchedModel &s = m.model();
	unsigned bit = 0;

	groups.resize(s.NumProcResourceKinds);
	masks.resize(s.NumProcResourceKinds);
	mca::computeProcResourceMasks(s, masks);
	for (unsigned i = 1; i < s.NumProcResourceKinds; i++) {
		const MCProcResourceDesc &r = *s.getProcResource(i);

		groups[i].name = r.Name;
		by_mask[masks[i]] = i;
		if (!r.SubUnitsIdxBegin) {
			groups[i].units = ((1u << r.NumUnits) - 1) << bit;
			bit += r.NumUnits;
		}
		if (r.BufferSize > 0) {
			queue_of[i] = unsigned(queue.size());
			queue.push_back(unsigned(r.BufferSize));
		}
	}
	for (unsigned i = 1; i < s.NumProcResourceKinds; i++) {
		const MCProcResourceDesc &r = *s.getProcResource(i);

		for (unsigned k = 0; r.SubUnitsIdxBegin && k < r.NumUnits; k++)
			groups[i].units |= groups[r.SubUnitsIdxBegin[k]].units;
	}
	if (bit > 32)
		errs() << m.what.name << ": more than 32 units\n";
}

void find_writes(const column &c, const mca::Instruction &in, figures &f)
{
	unsigned visible = 0;

	f.first[0] = f.first[1] = f.rax = f.rdx = f.flags = f.latency;
	for (const mca::WriteDescriptor &w : in.getDesc().Writes) {
		StringRef name = c.m.mri->getName(w.RegisterID);
		unsigned cycles = w.Latency;

		if (!w.isImplicitWrite()) {
			if (visible < 2)
				f.first[visible++] = cycles;
		} else if (name == "EFLAGS") {
			f.flags = cycles;
		} else if (name == "RAX" || name == "EAX" || name == "AX" || name == "AL") {
			f.rax = cycles;
		} else if (name == "RDX" || name == "EDX" || name == "DX") {
			f.rdx = cycles;
		}
	}
}

void find_reads(const column &c, const mca::Instruction &in, const std::set<std::string> &address,
	figures &f)
{
	bool some[2] = {false, false}, independent = false, dependent = false;

	f.late = f.late_hidden = 0;
	for (const mca::ReadState &r : in.getUses()) {
		const mca::ReadDescriptor &d = r.getDescriptor();
		const MCSchedClassDesc *sc = c.m.model().getSchedClassDesc(d.SchedClassID);
		int cycles = c.m.sti->getReadAdvanceCycles(sc, d.UseIndex, 0);
		bool hidden = d.isImplicitRead();
		int &late = hidden ? f.late_hidden : f.late;

		if (!r.getRegisterID() || address.count(c.m.mri->getName(r.getRegisterID())))
			continue;
		late = some[hidden] ? std::min(late, cycles) : cycles;
		some[hidden] = true;
		(r.isIndependentFromDef() ? independent : dependent) = true;
	}
	if (independent && !dependent)
		f.is |= 2;
}

unsigned column::class_of(const MCInst &inst, const std::set<std::string> &address)
{
	auto in = m.build(inst);
	figures f = {};

	if (!in)
		return 0xffff;
	const mca::InstrDesc &d = in->getDesc();
	f.uops = d.NumMicroOps;
	f.latency = m.mcii->get(inst.getOpcode()).isCall() ? 1 : d.MaxLatency;
	for (auto &[mask, usage] : d.Resources) {
		if (usage.size())
			f.uses.push_back({by_mask[mask],
				std::min(usage.size(), 127u) | (usage.isReserved() ? 0x80 : 0)});
	}
	for (auto &[resource, queue] : queue_of) {
		if (d.UsedBuffers & masks[resource])
			f.queues |= 1u << queue;
	}
	if (d.isZeroLatency())
		f.is |= 1;
	if (in->isOptimizableMove())
		f.is |= 4;
	find_writes(*this, *in, f);
	find_reads(*this, *in, address, f);
	return classes.insert({f, unsigned(classes.size())}).first->second;
}

/* ---- the forms of instructions ---- */

using row = std::array<uint16_t, 16>;
using key = std::pair<unsigned, uint32_t>; /* mnemonic, form */

struct table {
	std::vector<std::unique_ptr<column>> columns;
	std::map<key, std::map<row, unsigned>> votes; /* encodings with these figures */
	std::map<key, row> forms;
	std::vector<key> collisions;
	ZydisDecoder decoder;
	unsigned unknown = 0; /* to LLVM */

	void probe(const std::vector<uint8_t> &code);
	void elect();
};

std::set<std::string> address_of(
	const ZydisDecodedInstruction &in, const ZydisDecodedOperand *operands)
{
	std::set<std::string> found;

	for (unsigned i = 0; i < in.operand_count; i++) {
		if (operands[i].type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		for (ZydisRegister r : {operands[i].mem.base, operands[i].mem.index}) {
			if (r != ZYDIS_REGISTER_NONE)
				found.insert(StringRef(ZydisRegisterGetString(r)).upper());
		}
	}
	return found;
}

void table::probe(const std::vector<uint8_t> &code)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	MCInst inst;
	row r = {};

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &in, operands)))
		return;
	key k = {in.mnemonic, model_form(&in, operands)};
	if (k.second & (MODEL_LOCKED | MODEL_REPEATED))
		return;
	if (columns[0]->m.decode(code, inst) != in.length) {
		unknown++;
		return;
	}
	auto address = address_of(in, operands);
	for (size_t i = 0; i < columns.size(); i++)
		r[i] = uint16_t(columns[i]->class_of(inst, address));
	/* Forms that compilers hardly use: reversed ones, short ones for the accumulator. */
	bool rare = columns[0]->m.mcii->getName(inst.getOpcode()).ends_with("_REV") ||
		    !(in.attributes & ZYDIS_ATTRIB_HAS_MODRM);
	votes[k][r] += rare ? 1 : 100000;
}

/*
 * Most encodings win. Chips without AVX-512 know the forms that they have.
 */
void table::elect()
{
	for (auto &[k, rows] : votes) {
		auto more = [](auto &a, auto &b) { return a.second < b.second; };

		forms[k] = std::max_element(rows.begin(), rows.end(), more)->first;
		if (rows.size() > 1)
			collisions.push_back(k);
	}
	for (auto &[k, r] : forms) {
		auto plain = forms.find({k.first, k.second & ~MODEL_EVEX});

		for (size_t i = 0; i < columns.size() && plain != forms.end(); i++) {
			if (!columns[i]->m.sti->checkFeatures("+avx512f"))
				r[i] = plain->second[i];
		}
	}
}

/* ---- every encoding ---- */

/* Base and index that are neither rsp nor rbp nor another operand. */
std::pair<uint8_t, uint8_t> address_registers(unsigned reg)
{
	std::vector<uint8_t> free;

	for (uint8_t r : {3, 6, 7, 0, 1, 2}) {
		if (r != reg && r != ((reg + 1) & 7) && r != ((reg + 2) & 7))
			free.push_back(r);
	}
	return {free[0], free[1]};
}

/* ModRM with what follows, for register and memory operands that do not meet. */
std::vector<std::vector<uint8_t>> operand_bytes(unsigned reg, bool all)
{
	std::vector<std::vector<uint8_t>> out;
	auto [base, index] = address_registers(reg);
	uint8_t r = uint8_t(reg << 3), sib = uint8_t(index << 3 | base);

	for (unsigned rm = 0; rm < 8; rm++) {
		if (all || rm == reg || rm == ((reg + 1) & 7))
			out.push_back({uint8_t(0xc0 | r | rm)});
	}
	out.push_back({uint8_t(0x40 | r | base), 0x10});
	out.push_back({uint8_t(r | 4), sib});                 /* base + index */
	out.push_back({uint8_t(0x40 | r | 4), sib, 0x10});    /* and more */
	out.push_back({uint8_t(r | 4), uint8_t(0x80 | sib)}); /* 4 * index */
	out.push_back({uint8_t(0x40 | r | 4), uint8_t(0x80 | sib), 0x10});
	out.push_back({uint8_t(r | 5), 0x10, 0, 0, 0}); /* rip */
	return out;
}

void emit(table &t, std::vector<uint8_t> code, const std::vector<uint8_t> &operand)
{
	code.insert(code.end(), operand.begin(), operand.end());
	code.insert(code.end(), {1, 0, 0, 0, 0, 0, 0, 0});
	code.resize(15);
	t.probe(code);
}

/* Operand size besides a mandatory prefix: popcnt, tzcnt, lzcnt, crc32. */
bool takes_both(const std::vector<uint8_t> &map, unsigned opcode)
{
	if (map.size() == 1)
		return opcode == 0xb8 || opcode == 0xbc || opcode == 0xbd;
	return map.size() == 2 && map[1] == 0x38 && (opcode & 0xfe) == 0xf0;
}

bool is_prefix(unsigned opcode)
{
	return (opcode & 0xe7) == 0x26 || (opcode & 0xf0) == 0x40 || (opcode & 0xfc) == 0x64 ||
	       opcode == 0xf0 || opcode == 0xf2 || opcode == 0xf3;
}

void legacy(table &t)
{
	const std::vector<std::vector<uint8_t>> prefixes = {
		{}, {0x66}, {0xf3}, {0xf2}, {0x66, 0xf3}, {0x66, 0xf2}};
	const std::vector<std::vector<uint8_t>> maps = {{}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}};

	for (auto &map : maps)
		for (unsigned opcode = 0; opcode < 256; opcode++)
			for (auto &prefix : prefixes)
				for (unsigned w = 0; w < 2; w++) {
					std::vector<uint8_t> code = prefix;

					if (map.empty() ? is_prefix(opcode)
							: prefix.size() > 1 &&
								  !takes_both(map, opcode))
						continue;
					if (w)
						code.push_back(0x48);
					code.insert(code.end(), map.begin(), map.end());
					code.push_back(uint8_t(opcode));
					for (unsigned reg = 0; reg < 8; reg++)
						for (auto &o : operand_bytes(reg, map.size() < 2))
							emit(t, code, o);
				}
}

void vex(table &t)
{
	for (unsigned map = 1; map < 4; map++)
		for (unsigned opcode = 0; opcode < 256; opcode++)
			for (unsigned low = 0; low < 16; low++) /* pp, L, W */
				for (unsigned reg = 0; reg < 8; reg++)
					for (unsigned v : {(reg + 1) & 7, (reg + 2) & 7, 16u}) {
						unsigned vvvv = v == 16 ? 15 : ~v & 15;
						std::vector<uint8_t> code = {0xc4,
							uint8_t(0xe0 | map),
							uint8_t((low & 8) << 4 | vvvv << 3 |
								(low & 7)),
							uint8_t(opcode)};
						for (auto &o : operand_bytes(reg, false))
							emit(t, code, o);
					}
}

void evex(table &t)
{
	const uint8_t masks[] = {0, 1, 0x81}; /* none, k1, k1 and z */

	for (unsigned map : {1, 2, 3, 5, 6})
		for (unsigned opcode = 0; opcode < 256; opcode++)
			for (unsigned low = 0; low < 64; low++) /* pp, W, L'L, b */
				for (unsigned reg : {0, 1, 2, 4, 6})
					for (unsigned v : {(reg + 1) & 7, 16u})
						for (uint8_t mask : masks) {
							unsigned vvvv = v == 16 ? 15 : ~v & 15;
							uint8_t p1 =
								uint8_t((low & 4) << 5 | vvvv << 3 |
									4 | (low & 3));
							uint8_t p2 = uint8_t(mask | 8 |
									     (low >> 3 & 3) << 5 |
									     (low >> 5 & 1) << 4);
							std::vector<uint8_t> code = {0x62,
								uint8_t(0xf0 | map), p1, p2,
								uint8_t(opcode)};
							for (auto &o : operand_bytes(reg, false))
								emit(t, code, o);
						}
}

/* What the look-up falls back to where a form with flags is not there. */
bool is_redundant(const table &t, const key &k, const row &r)
{
	uint32_t wider = model_wider_form(k.second);
	auto at = t.forms.find({k.first, wider});

	return wider != k.second && at != t.forms.end() && at->second == r;
}

/* ---- writing ---- */

const char *const kinds[] = {"0", "I", "R8", "R16", "R32", "R64", "X", "Y", "Z", "K", "MM", "ST",
	"S", "M8", "M16", "M32", "M64", "M80", "M128", "M256", "M512", "MO", "VX", "VY", "VZ", "A"};
const char *const flag_names[] = {"MASKED", "ZEROED", "ROUNDED", "SAME", "LONG", "SCALED", "EVEX"};

const char origin[] =
	"/*\n"
	" * Generated by tools/models/generate.cc from the scheduling models of "
	"LLVM " LLVM_VERSION_STRING "\n"
	" * (lib/Target/X86/X86Sched*.td; Apache License v2.0 with LLVM Exceptions). Do not edit:\n"
	" * what is wrong here is put right in model_corrections.c.\n";

FILE *open_file(const std::string &path)
{
	FILE *f = fopen(path.c_str(), "w");

	if (!f) {
		perror(path.c_str());
		exit(1);
	}
	fputs(origin, f);
	return f;
}

/* Several items on a line. */
void put(FILE *f, size_t &at, const std::string &text)
{
	if (at + text.size() > 98) {
		fputc('\n', f);
		at = 0;
	}
	at += size_t(fprintf(f, "%s%s", at ? " " : "", text.c_str()));
}

std::string form_text(const key &k, unsigned row)
{
	StringRef name(ZydisMnemonicGetString(ZydisMnemonic(k.first)));
	std::string s = name.upper() + "," + std::to_string(row), flags;

	for (unsigned i = 0; i < 7; i++) {
		if (k.second & MODEL_MASKED << i)
			flags += (flags.empty() ? "" : "|") + std::string(flag_names[i]);
	}
	s = flags.empty() ? "F(" + s : "G(" + s + "," + flags;
	for (unsigned i = 0; i < MODEL_OPERANDS && k.second >> 5 * i & 31; i++)
		s += std::string(",") + kinds[k.second >> 5 * i & 31];
	return s + ")";
}

void write_forms(const table &t, const std::string &folder)
{
	std::map<row, unsigned> rows;
	std::vector<row> order;
	FILE *f = open_file(folder + "/forms.inc");
	size_t at = 0, n = 0;

	fputs(" *\n * One F(mnemonic, row, operands) or G(mnemonic, row, flags, operands) for each "
	      "form.\n */\n",
		f);
	for (auto &[k, r] : t.forms) {
		if (is_redundant(t, k, r))
			continue;
		auto found = rows.insert({r, unsigned(rows.size())});
		if (found.second)
			order.push_back(r);
		put(f, at, form_text(k, found.first->second));
		n++;
	}
	fputc('\n', f);
	fclose(f);

	f = open_file(folder + "/rows.inc");
	fputs(" *\n * The class of each form's row on each chip; 65535: it has none. Columns:\n *",
		f);
	for (auto &c : t.columns)
		fprintf(f, " %s", c->m.what.name);
	fputs("\n */\n", f);
	at = 0;
	for (const row &r : order) {
		std::string text = "{";

		for (size_t i = 0; i < t.columns.size(); i++)
			text += (i ? "," : "") + std::to_string(r[i]);
		put(f, at, text + "},");
	}
	fputc('\n', f);
	fclose(f);
	errs() << n << " forms of " << t.forms.size() << ", " << order.size() << " rows, "
	       << t.collisions.size() << " keys with different figures, " << t.unknown
	       << " encodings unknown to LLVM\n";
}

unsigned moves(const MCExtraProcessorInfo &e, const MCRegisterFileDesc &file)
{
	for (unsigned i = 0; i < file.NumRegisterCostEntries; i++) {
		if (e.RegisterCostTable[file.RegisterCostEntryIdx + i].AllowMoveElimination)
			return file.MaxMovesEliminatedPerCycle;
	}
	return 0;
}

void write_limits(FILE *f, const column &c)
{
	const MCSchedModel &s = c.m.model();
	unsigned retire = 0, window = s.MicroOpBufferSize, queues[2] = {}, files[2] = {},
		 moved[2] = {};

	if (s.hasExtraProcessorInfo()) {
		const MCExtraProcessorInfo &e = s.getExtraProcessorInfo();
		retire = e.MaxRetirePerCycle;
		window = e.ReorderBufferSize ? e.ReorderBufferSize : window;
		if (e.LoadQueueID)
			queues[0] = unsigned(s.getProcResource(e.LoadQueueID)->BufferSize);
		if (e.StoreQueueID)
			queues[1] = unsigned(s.getProcResource(e.StoreQueueID)->BufferSize);
		for (unsigned i = 1; i < e.NumRegisterFiles; i++) {
			unsigned vector = StringRef(e.RegisterFiles[i].Name).contains("Fp");
			files[vector] = e.RegisterFiles[i].NumPhysRegs;
			moved[vector] = moves(e, e.RegisterFiles[i]);
		}
	}
	fprintf(f, "\t.limits = {\n\t\t.width = %u,\n\t\t.retire = %u,\n\t\t.window = %u,\n",
		s.IssueWidth, retire, window);
	fprintf(f, "\t\t.load_queue = %u,\n\t\t.store_queue = %u,\n", queues[0], queues[1]);
	fprintf(f, "\t\t.integers = %u,\n\t\t.vectors = %u,\n", files[0], files[1]);
	fprintf(f, "\t\t.integer_moves = %u,\n\t\t.vector_moves = %u,\n", moved[0], moved[1]);
	fprintf(f, "\t\t.nqueues = %zu,\n\t\t.queue = {", c.queue.size());
	for (unsigned size : c.queue)
		fprintf(f, "%u,", size);
	fprintf(f, "},\n\t},\n");
}

std::string c_name(const char *name)
{
	std::string s = name;

	std::replace(s.begin(), s.end(), '-', '_');
	return s;
}

/* Where the uses begin in the pool, which grows when they are not in it yet. */
size_t pooled(std::vector<std::pair<unsigned, unsigned>> &pool,
	const std::vector<std::pair<unsigned, unsigned>> &uses)
{
	auto at = std::search(pool.begin(), pool.end(), uses.begin(), uses.end());
	size_t where = size_t(at - pool.begin());

	if (at == pool.end() && !uses.empty())
		pool.insert(pool.end(), uses.begin(), uses.end());
	return uses.empty() ? 0 : where;
}

void write_model(const column &c, unsigned number, const std::string &folder)
{
	std::string name = c_name(c.m.what.name);
	FILE *f = open_file(folder + "/" + name + ".inc");
	std::vector<std::pair<unsigned, unsigned>> pool;
	std::vector<const figures *> order(c.classes.size());
	size_t at = 0;

	fprintf(f, " * %s: -mcpu=%s.\n */\n", c.m.what.title, c.m.what.mcpu);
	fprintf(f, "static const struct model_group %s_group[] = {\n", name.c_str());
	for (auto &g : c.groups)
		put(f, at, "{\"" + g.name + "\"," + std::to_string(g.units) + "u},");
	for (auto &[figure, index] : c.classes)
		order[index] = &figure;

	std::string classes;
	for (const figures *p : order) {
		char line[160];

		snprintf(line, sizeof line, "{%u,%u,{%u,%u},%u,%u,%u,%d,%d,%u,%u,%zu,%zu},\n",
			p->uops, p->latency, p->first[0], p->first[1], p->rax, p->rdx, p->flags,
			p->late, p->late_hidden, p->is, p->queues, pooled(pool, p->uses),
			p->uses.size());
		classes += line;
	}
	fprintf(f, "\n};\nstatic const struct model_use %s_use[] = {\n", name.c_str());
	at = 0;
	for (auto &[group, cycles] : pool)
		put(f, at, "{" + std::to_string(group) + "," + std::to_string(cycles) + "},");
	fprintf(f, "\n};\nstatic const struct model_class %s_class[] = {\n%s};\n", name.c_str(),
		classes.c_str());
	fprintf(f, "static const struct model_tables %s_tables = {\n\t.source = \"%s\",\n",
		name.c_str(), c.m.what.mcpu);
	write_limits(f, c);
	fprintf(f, "\t.group = %s_group,\n\t.use = %s_use,\n\t.class = %s_class,\n", name.c_str(),
		name.c_str(), name.c_str());
	fprintf(f, "\t.ngroups = %zu,\n\t.nclasses = %zu,\n\t.column = %u,\n};\n", c.groups.size(),
		order.size(), number);
	fclose(f);
	errs() << c.m.what.name << ": " << order.size() << " classes, " << pool.size() << " uses\n";
}

} // namespace

int main(int argc, char **argv)
{
	table t;
	std::string folder = argc > 1 ? argv[1] : ".";

	ZydisDecoderInit(&t.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (const chip &c : chips) {
		if (!c.shares)
			t.columns.push_back(std::make_unique<column>(c));
	}
	legacy(t);
	vex(t);
	evex(t);
	t.elect();
	write_forms(t, folder);
	for (unsigned i = 0; i < t.columns.size(); i++)
		write_model(*t.columns[i], i, folder);
	for (const key &k : t.collisions)
		errs() << "different: " << form_text(k, 0) << "\n";
	return 0;
}
