/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C functions of cfi.h, implemented with LLVM's parser. The parser is a set of
 * templates over an address space. The address space here checks every read, and
 * uses no loader, lock or heap, unlike upstream's.
 *
 * Invalid input causes a non-local jump to the entry of the call. Each thread has its
 * target of the jump, and restores the previous one, because a handler that unwinds
 * may interrupt another one.
 */
#include <stdint.h>
#include <string.h>

#include "cfi.h"

extern "C" [[noreturn]] void cfi_bail_out();

#define CFI_CFA_BY_EXPRESSION 0xffffffffu
#define CFI_MAX_REMEMBERED 2

#include "libunwind.h"
#include "config.h"
#include "dwarf2.h"
#include "Registers.hpp"
#include "DwarfParser.hpp"
#include "EHHeaderParser.hpp"
#include "DwarfInstructions.hpp"

namespace
{

struct BailOut {
	void *jump[5]; /* the type that __builtin_setjmp needs */
	cfi_result reason;
	BailOut *outer;
};

/* Initial-exec, because the first touch of dynamic TLS may allocate. */
__attribute__((tls_model("initial-exec"))) __thread BailOut *bail;

[[noreturn]] __attribute__((noinline)) void leave(cfi_result reason)
{
	bail->reason = reason;
	__builtin_longjmp(bail->jump, 1);
}

/* Memory as the parser sees it. */
class CheckedSpace
{
      public:
	typedef uintptr_t pint_t;
	typedef intptr_t sint_t;

	uintptr_t start, end;
	const cfi_stack *stack = nullptr;

	explicit CheckedSpace(const cfi_section *section) : start(section->start), end(section->end)
	{
	}

	template <typename T> T read(pint_t address)
	{
		/* One comparison for each, because an address below the start wraps to a huge offset. */
		if (__builtin_expect(address - start >= end - start || end - address < sizeof(T), 0))
			return read_stack<T>(stack, address);
		T value;
		memcpy(&value, reinterpret_cast<const void *>(address), sizeof value);
		return value;
	}
	uint8_t get8(pint_t address)
	{
		return read<uint8_t>(address);
	}
	uint16_t get16(pint_t address)
	{
		return read<uint16_t>(address);
	}
	uint32_t get32(pint_t address)
	{
		return read<uint32_t>(address);
	}
	uint64_t get64(pint_t address)
	{
		return read<uint64_t>(address);
	}
	pint_t getP(pint_t address)
	{
		return read<pint_t>(address);
	}
	uint64_t getRegister(pint_t address)
	{
		return read<uint64_t>(address);
	}
	/* No frame depends on the value of a floating-point register. */
	double getDouble(pint_t)
	{
		return 0;
	}
	libunwind::v128 getVector(pint_t)
	{
		leave(CFI_MALFORMED);
	}

	uint64_t getULEB128(pint_t &address, pint_t limit)
	{
		return getLEB128(address, limit, false);
	}
	int64_t getSLEB128(pint_t &address, pint_t limit)
	{
		return static_cast<int64_t>(getLEB128(address, limit, true));
	}

	pint_t getEncodedP(pint_t &address, pint_t limit, uint8_t encoding, pint_t data_base = 0)
	{
		const pint_t at = address;
		pint_t value;
		switch (encoding & 0x0f) {
		case DW_EH_PE_ptr:
		case DW_EH_PE_udata8:
		case DW_EH_PE_sdata8:
			value = get64(at);
			address += 8;
			break;
		case DW_EH_PE_udata4:
			value = get32(at);
			address += 4;
			break;
		case DW_EH_PE_sdata4:
			value = static_cast<pint_t>(static_cast<int32_t>(get32(at)));
			address += 4;
			break;
		case DW_EH_PE_udata2:
			value = get16(at);
			address += 2;
			break;
		case DW_EH_PE_sdata2:
			value = static_cast<pint_t>(static_cast<int16_t>(get16(at)));
			address += 2;
			break;
		case DW_EH_PE_uleb128: value = getULEB128(address, limit); break;
		case DW_EH_PE_sleb128: value = static_cast<pint_t>(getSLEB128(address, limit)); break;
		default: leave(CFI_MALFORMED);
		}
		switch (encoding & 0x70) {
		case DW_EH_PE_absptr: break;
		case DW_EH_PE_pcrel: value += at; break;
		case DW_EH_PE_datarel: value += data_base; break;
		default: leave(CFI_MALFORMED);
		}
		return encoding & DW_EH_PE_indirect ? getP(value) : value;
	}

      private:
	/* Not inlined, and without `this`: this is rare, and the object of the frequent reads
	 * stays in registers. */
	template <typename T>
	__attribute__((noinline, cold)) static T read_stack(const cfi_stack *stack, pint_t address)
	{
		T value;
		if (stack == nullptr || address - stack->start >= stack->end - stack->start ||
		    stack->end - address < sizeof(T))
			leave(CFI_BAD_READ);
		if (stack->read == nullptr)
			memcpy(&value, reinterpret_cast<const void *>(address), sizeof value);
		else if (!stack->read(stack->context, address, &value, sizeof value))
			leave(CFI_BAD_READ);
		return value;
	}

	uint64_t getLEB128(pint_t &address, pint_t limit, bool is_signed)
	{
		pint_t p = address;
		uint64_t value = 0;
		unsigned shift = 0;
		uint8_t byte;
		do {
			if (p == limit || shift > 63)
				leave(CFI_MALFORMED);
			byte = get8(p++);
			value |= static_cast<uint64_t>(byte & 0x7f) << shift;
			shift += 7;
		} while (byte & 0x80);
		if (is_signed && (byte & 0x40) && shift < 64)
			value |= ~uint64_t(0) << shift;
		address = p;
		return value;
	}
};

typedef libunwind::CFI_Parser<CheckedSpace> Parser;

#if defined(__x86_64__)
typedef libunwind::Registers_x86_64 Registers;
#else
typedef libunwind::Registers_arm64 Registers;
#endif

/* Binary search in the header that every linker writes: pairs of 32-bit offsets
 * from the header. Upstream's parser reads other layouts. */
bool find_function(CheckedSpace &space, const cfi_section *section, uintptr_t pc, Parser::FDE_Info *fde,
                   Parser::CIE_Info *cie)
{
	const uint32_t usual = DW_EH_PE_pcrel << 8 | DW_EH_PE_sdata4 << 8 | DW_EH_PE_udata4 << 16 |
	                       static_cast<uint32_t>(DW_EH_PE_datarel | DW_EH_PE_sdata4) << 24 | 1;
	if (section->header_end - section->header < 12 || section->header_end > section->end ||
	    section->header < section->start)
		return false;
	if (space.get32(section->header) != usual)
		return libunwind::EHHeaderParser<CheckedSpace>::findFDE(
			space, pc, section->header,
			static_cast<uint32_t>(section->header_end - section->header), fde, cie);

	struct __attribute__((packed)) Entry { /* the file decides where the header is, aligned or not */
		int32_t function, fde;
	};
	const uintptr_t table = section->header + 12;
	size_t count = space.get32(section->header + 8);
	if (count > (section->header_end - table) / sizeof(Entry))
		leave(CFI_MALFORMED);
	const intptr_t wanted = static_cast<intptr_t>(pc - section->header);
	const Entry *entry = reinterpret_cast<const Entry *>(table);
	if (count == 0 || entry->function > wanted)
		return false;
	while (count > 1) {
		const size_t half = count / 2;
		entry += entry[half].function <= wanted ? half : 0;
		count -= half;
	}
	if (Parser::decodeFDE(space, section->header + static_cast<intptr_t>(entry->fde), fde, cie))
		leave(CFI_MALFORMED);
	return pc >= fde->pcStart && pc < fde->pcEnd;
}

cfi_register place_of(const Parser::RegisterLocation &location)
{
	switch (location.location) {
	case Parser::kRegisterUnused: return { CFI_SAME, 0 };
	case Parser::kRegisterUndefined: return { CFI_UNDEFINED, 0 };
	case Parser::kRegisterInCFA: return { CFI_AT_CFA, location.value };
	default: return { CFI_OTHERWISE, 0 };
	}
}

/* Runs the instructions of the function's unwind information up to `pc`. */
cfi_result parse(CheckedSpace &space, const cfi_section *section, uintptr_t pc, Parser::FDE_Info *fde,
                 Parser::CIE_Info *cie, Parser::PrologInfo *prolog)
{
	if (!find_function(space, section, pc, fde, cie))
		return CFI_NO_ENTRY;
	if (cie->returnAddressRegister != CFI_RETURN_ADDRESS ||
	    !Parser::parseFDEInstructions(space, *fde, *cie, pc, Registers::getArch(), prolog))
		return CFI_MALFORMED;
	return CFI_FOUND;
}

/* None of these may be inlined, because __builtin_longjmp must not land in its own
 * function, and the cached path must not have their frames. */
__attribute__((noinline)) cfi_result find_register(const cfi_section *section, uintptr_t pc, unsigned number,
                                                   cfi_register *place)
{
	CheckedSpace space(section);
	Parser::FDE_Info fde;
	Parser::CIE_Info cie;
	Parser::PrologInfo prolog;
	const cfi_result result = parse(space, section, pc, &fde, &cie, &prolog);
	if (result == CFI_FOUND)
		*place = place_of(prolog.savedRegisters[number]);
	return result;
}

__attribute__((noinline)) cfi_result find_row(const cfi_section *section, uintptr_t pc, cfi_row *row)
{
	CheckedSpace space(section);
	Parser::FDE_Info fde;
	Parser::CIE_Info cie;
	Parser::PrologInfo prolog;
	const cfi_result result = parse(space, section, pc, &fde, &cie, &prolog);
	if (result != CFI_FOUND)
		return result;

	row->function_start = fde.pcStart;
	row->function_end = fde.pcEnd;
	row->signal_frame = cie.isSignalFrame;
	/* On both architectures, no other function has to preserve registers 0 and 1. */
	row->eh_return = prolog.savedRegisters[0].location == Parser::kRegisterInCFA &&
	                 prolog.savedRegisters[1].location == Parser::kRegisterInCFA;
	row->return_address = place_of(prolog.savedRegisters[CFI_RETURN_ADDRESS]);
	row->frame_pointer = place_of(prolog.savedRegisters[CFI_FRAME_POINTER]);
	row->cfa_register = prolog.cfaRegister;
	row->cfa_offset = prolog.cfaRegisterOffset;
	row->cfa_by_expression = prolog.cfaRegister == CFI_CFA_BY_EXPRESSION;
	return CFI_FOUND;
}

__attribute__((noinline)) cfi_result step(const cfi_section *section, uintptr_t pc, const cfi_stack *stack,
                                          uint64_t *registers, bool *signal_frame)
{
	CheckedSpace space(section);
	Parser::FDE_Info fde;
	Parser::CIE_Info cie;
	if (!find_function(space, section, pc, &fde, &cie))
		return CFI_NO_ENTRY;
	if (cie.returnAddressRegister != CFI_RETURN_ADDRESS)
		return CFI_MALFORMED;
	space.stack = stack;

	Registers state;
	for (int i = 0; i < CFI_REGISTERS; i++)
		state.setRegister(i, registers[i]);
	if (libunwind::DwarfInstructions<CheckedSpace, Registers>::stepWithDwarf(
		    space, pc, fde.fdeStart, state, *signal_frame, false) != UNW_STEP_SUCCESS)
		return CFI_MALFORMED;
	for (int i = 0; i < CFI_REGISTERS; i++)
		registers[i] = state.getRegister(i);
#if defined(__aarch64__)
	/* The signature of a return address is in the bits above the address. */
	registers[CFI_INSTRUCTION_POINTER] &= (UINT64_C(1) << 48) - 1;
#endif
	return CFI_FOUND;
}

} // namespace

extern "C" void cfi_bail_out()
{
	leave(CFI_MALFORMED);
}

extern "C" __attribute__((noinline)) cfi_result cfi_find_row(const cfi_section *section, uintptr_t pc,
                                                             cfi_row *row)
{
	BailOut here;
	here.outer = bail;
	bail = &here;
	cfi_result result;
	if (__builtin_setjmp(here.jump) == 0)
		result = find_row(section, pc, row);
	else
		result = bail->reason;
	bail = bail->outer;
	return result;
}

extern "C" __attribute__((noinline)) cfi_result cfi_find_register(const cfi_section *section, uintptr_t pc,
                                                                  unsigned number, cfi_register *place)
{
	BailOut here;
	here.outer = bail;
	bail = &here;
	cfi_result result;
	if (__builtin_setjmp(here.jump) == 0)
		result = find_register(section, pc, number, place);
	else
		result = bail->reason;
	bail = bail->outer;
	return result;
}

extern "C" __attribute__((noinline)) cfi_result cfi_step(const cfi_section *section, uintptr_t pc,
                                                         const cfi_stack *stack, uint64_t *registers,
                                                         bool *signal_frame)
{
	BailOut here;
	here.outer = bail;
	bail = &here;
	cfi_result result;
	if (__builtin_setjmp(here.jump) == 0)
		result = step(section, pc, stack, registers, signal_frame);
	else
		result = bail->reason;
	bail = bail->outer;
	return result;
}
