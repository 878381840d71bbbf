/*
 * What both tools beside this file need of LLVM: a chip's scheduling model, decoding by LLVM, and
 * instructions as llvm-mca sees them. By hand only; culprit itself is built without LLVM.
 */
#ifndef CULPRIT_MODELS_MACHINE_H
#define CULPRIT_MODELS_MACHINE_H

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/MCA/Context.h>
#include <llvm/MCA/CustomBehaviour.h>
#include <llvm/MCA/InstrBuilder.h>
#include <llvm/MCA/Pipeline.h>
#include <llvm/MCA/SourceMgr.h>
#include <llvm/MCA/Support.h>
#include <llvm/Support/TargetSelect.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/* The models of culprit, and LLVM's that they are made from. */
struct chip {
	const char *name, *mcpu, *title;
	bool shares = false; /* LLVM has the same model for another one of them */
};
extern const std::vector<chip> chips;

class machine
{
      public:
	explicit machine(const chip &which);

	/* Length of the instruction, or 0 where LLVM knows none. */
	unsigned decode(llvm::ArrayRef<uint8_t> code, llvm::MCInst &inst) const;
	/* As llvm-mca schedules it; null where the model has no figures. */
	std::unique_ptr<llvm::mca::Instruction> build(const llvm::MCInst &inst);
	/* Cycles of so many iterations. */
	unsigned simulate(std::vector<std::unique_ptr<llvm::mca::Instruction>> &body, unsigned n);

	const llvm::MCSchedModel &model() const
	{
		return sti->getSchedModel();
	}

	const chip &what;
	std::unique_ptr<llvm::MCRegisterInfo> mri;
	std::unique_ptr<llvm::MCAsmInfo> mai;
	std::unique_ptr<llvm::MCInstrInfo> mcii;
	std::unique_ptr<llvm::MCSubtargetInfo> sti;

      private:
	std::unique_ptr<llvm::MCInstrAnalysis> mcia;
	std::unique_ptr<llvm::MCContext> context;
	std::unique_ptr<llvm::MCDisassembler> disassembler;
	std::unique_ptr<llvm::mca::InstrumentManager> instruments;
	std::unique_ptr<llvm::mca::InstrPostProcess> post;
	std::unique_ptr<llvm::mca::InstrBuilder> builder;
};

#endif
