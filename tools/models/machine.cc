#include "machine.h"

#include <llvm/Support/raw_ostream.h>

using namespace llvm;

/* LLVM 19 schedules znver5 by its model of Zen 4, and unknown chips by that of Sandy Bridge. */
const std::vector<chip> chips = {
	{"generic", "x86-64-v3", "a generic core (LLVM's Haswell, as for x86-64-v3)"},
	{"zen2", "znver2", "AMD Zen 2"},
	{"zen3", "znver3", "AMD Zen 3"},
	{"zen4", "znver4", "AMD Zen 4"},
	{"zen5", "znver5", "AMD Zen 5 (LLVM 19 has no model of it: the figures are Zen 4's)", true},
	{"skylake", "skylake", "Intel Skylake client"},
	{"skylake-server", "skylake-avx512", "Intel Skylake server"},
	{"icelake", "icelake-server", "Intel Ice Lake"},
	{"alderlake-p", "alderlake", "Intel Alder Lake P"},
	{"sapphirerapids", "sapphirerapids", "Intel Sapphire Rapids"},
};

static const Target *target_of(const Triple &triple)
{
	static bool ready;
	std::string error;

	if (!ready) {
		InitializeAllTargetInfos();
		InitializeAllTargetMCs();
		InitializeAllDisassemblers();
		InitializeAllTargetMCAs();
		ready = true;
	}
	return TargetRegistry::lookupTarget(triple.str(), error);
}

machine::machine(const chip &which) : what(which)
{
	Triple triple("x86_64-pc-linux-gnu");
	const Target *target = target_of(triple);

	mri.reset(target->createMCRegInfo(triple.str()));
	mai.reset(target->createMCAsmInfo(*mri, triple.str(), MCTargetOptions()));
	mcii.reset(target->createMCInstrInfo());
	sti.reset(target->createMCSubtargetInfo(triple.str(), which.mcpu, ""));
	mcia.reset(target->createMCInstrAnalysis(mcii.get()));
	context = std::make_unique<MCContext>(triple, mai.get(), mri.get(), sti.get());
	disassembler.reset(target->createMCDisassembler(*sti, *context));
	instruments = std::make_unique<mca::InstrumentManager>(*sti, *mcii);
	post.reset(target->createInstrPostProcess(*sti, *mcii));
	builder = std::make_unique<mca::InstrBuilder>(
		*sti, *mcii, *mri, mcia.get(), *instruments, 100);
}

unsigned machine::decode(ArrayRef<uint8_t> code, MCInst &inst) const
{
	uint64_t size = 0;

	if (disassembler->getInstruction(inst, size, code, 0, nulls()) != MCDisassembler::Success)
		return 0;
	return unsigned(size);
}

std::unique_ptr<mca::Instruction> machine::build(const MCInst &inst)
{
	SmallVector<mca::Instrument *> none;
	auto made = builder->createInstruction(inst, none);

	if (!made) {
		consumeError(made.takeError());
		return nullptr;
	}
	if (post)
		post->postProcessInstruction(*made, inst);
	return std::move(*made);
}

unsigned machine::simulate(std::vector<std::unique_ptr<mca::Instruction>> &body, unsigned n)
{
	mca::CircularSourceMgr source(body, n);
	mca::CustomBehaviour behaviour(*sti, source, *mcii);
	mca::PipelineOptions options(0, 0, 0, 0, 0, 0, true);
	mca::Context scene(*mri, *sti);
	auto cycles = scene.createDefaultPipeline(options, source, behaviour)->run();

	if (!cycles) {
		consumeError(cycles.takeError());
		return 0;
	}
	return *cycles;
}
