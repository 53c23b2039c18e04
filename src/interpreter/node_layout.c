/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/node_layout.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "interpreter/language.h"

#define PREFIX "v8dbg_"
#define NAME_BYTES_MAX 128

/* Of node 18, 19, … 26. */
static const struct node_version versions[] = {
	{ 10, 2, 32, 16, 24, 0, 48, 40,
	  "11111:CLUEN:1:11111:LL:::C:::1112CCCL::LL:LL;LLCCCLLLLLM:CCCCCCCCCCCCCCCCCCCCCCCC::::111::"
	  ":UULU^UCLUUENDDUUCCCCCCCC::::1DD1:D1DCD:CCCC111C::::::::::::::::::::::L:CCU:1111:11:LULL1:"
	  ":11111111111111111" },
	{ 10, 8, 32, 16, 24, 0, 48, 40,
	  "11111:CLUEN:1:11111:LL:::C:::1112CCCL::LL:LL;LLCCCLLLLLMCCCCCCCCCCCCCCCCCCCCCCCC::::111:::"
	  "LUULU^UCLUUENDDUUCCCCCCCC::::1ED1:D1DCD:CCCC111L::::::::::::::::::::::L:CCU:1111:11:LULL1:"
	  ":11111111111111111" },
	{ 11, 3, 32, 16, 24, 40, 48, 56,
	  "11111:CLUEN:1:11111:LL:::C:::1112CCCL::LL:LL;LLCCCLLLMLMCCCCCCCCCCCCCCCCCCCCCCCC::::111:::"
	  "LUULU^UCLUUENDDUUCCCCCCCC::::1ED1:D1DCD:CCCC111L::::::::::::::::::::::L:CCU:1111:11:LULL1:"
	  ":11111111111111111" },
	{ 11, 8, 32, 8, 16, 32, 40, 44,
	  "11111:CLUEN:1:11111:LL:::C:::1112CCCL::LL:LL;LLCCCLLLMLMCCCCCCCCCCCCCCCCCCCCCCCC::::111:::"
	  "LUULU^UCLUUENDDUUCCCCCCCC1:::11ED1:D1DCD:CCCC111L::::::::::::::::::::::L:CCU:1111:11:LULL1"
	  "::11111111111111111" },
	{ 12, 4, 24, 8, 16, 40, 48, 52,
	  "11111:CLUEN:1:11111:LL:::C:::1112CCCL:L::LL:LL;LLCUCCLLLMLMCCCCCCCCCCCCCCCCCCCCCCCC::::111"
	  ":::LUULU^UCLUUENDDUUCCCCCCCCC1:::11ED1:D1DCD:CCCC111L::::::::::::::::::::::L:CCU:1111:11:L"
	  "ULL1::11111111111111111" },
	{ 12, 9, 24, 8, 16, 40, 48, 52,
	  "11111:CLUEN:1:11111:LL:::C:::1112CCCL:L::LL:LL;LLCUCCLLLMLMCCCCCCCCCCCCCCCCCCCCCCCC::::11:"
	  ":::LUULU^UCLUUENDDUUCCCCCCCCC1:::11ED1:D1DCD:CCCC111L::::::::::L::::::::::::LL:CU:1111:11:"
	  "LULL1::11111111111111111" },
	{ 13, 6, 24, 8, 16, 40, 52, 56,
	  "11111:CLUEN:1:11111:LLL::::C:::1112CCCL:L::LLL:LLL;LLCUCCLLLMLMCCCCCCCCCCCCCCCCCCCCCCCC:::"
	  ":11::::LUULU^UCLUUENDDUUCCCCCCCCC1:::11ED1:D1DCD:CCCC111L::::::::::L::::::::::::LL:CU:1111"
	  ":11:LULL1::11111111111111111" },
	{ 14, 1, 24, 8, 16, 40, 52, 56,
	  "11111:CLUEN:1:11111:LLL::::C:::1112CCCL:L::LLL:LLL;LLCUCCLLLMLM:CCCCCCCCCCCCDCCCCCCCCCCCC:"
	  ":::11::::LUULU^UCLUUENDDUUCCCCCCCCC1:::11ED1:D1DCD:CCCCC111L::::::::::L::::::::::::LL:CU:L"
	  "1111:11:LULL1::11111111111111111" },
	{ 14, 6, 24, 8, 16, 40, 52, 56,
	  "11111:CLUEN:1:11111:LLL::::C:::1112CCCL:L::LLL:LLL;LLCUCCLLLMLMCCCCCCCCCCCCCDCCCCCCCCCCCC:"
	  ":::11::::LUULU^UCLUUENDDUUC<<<<<<CC1:::11ED1:D1DCD:CCCCC111L::::::::::L::::::::::::LL:CU:U"
	  "1111:11:LULL1:211111111111111111" },
};

#define AT(field) offsetof(struct node_layout, field)

/* What must be so: the rest of this language's code builds on it. */
static const struct {
	const char *name;
	int32_t value;
} required[] = {
	{ "TaggedSize", 8 },
	{ "HeapObjectTag", 1 },
	{ "HeapObjectTagMask", 3 },
	{ "SmiShiftSize", 31 },
	{ "off_fp_context_or_frame_type", -8 },
	{ "off_fp_function", -16 },
	{ "off_fp_bytecode_array", -32 },
	{ "off_fp_bytecode_offset", -40 },
	{ "class_Map__instance_type__uint16_t", 12 },
	{ "class_FixedArrayBase__length__SMI", 8 },
	{ "class_FixedArray__data__uintptr_t", 16 },
	{ "class_String__length__int32_t", 12 },
	{ "class_SeqOneByteString__chars__char", 16 },
	{ "class_SeqTwoByteString__chars__char", 16 },
	{ "class_ConsString__first__String", 16 },
	{ "class_ConsString__second__String", 24 },
	{ "class_SlicedString__parent__String", 16 },
	{ "class_SlicedString__offset__SMI", 24 },
	{ "class_ThinString__actual__String", 16 },
	{ "class_ExternalString__resource__Object", 16 },
	{ "class_Script__source__Object", 8 },
	{ "class_Script__name__Object", 16 },
	{ "scopeinfo_idx_ncontextlocals", 2 },
	{ "CodeKindFieldMask", 15 },
};

/* Names of the same constant in different versions. */
static const struct {
	size_t to;
	bool is_optional;
	const char *names[3];
} constants[] = {
	{ AT(function), false, { "type_JSFunction__JS_FUNCTION_TYPE" } },
	{ AT(shared), false, { "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE" } },
	{ AT(script), false, { "type_Script__SCRIPT_TYPE" } },
	{ AT(scope), false, { "type_ScopeInfo__SCOPE_INFO_TYPE" } },
	{ AT(bytecodes), false, { "type_BytecodeArray__BYTECODE_ARRAY_TYPE" } },
	{ AT(bytes), false, { "type_ByteArray__BYTE_ARRAY_TYPE" } },
	{ AT(trusted_bytes), true, { "type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE" } },
	{ AT(code), false, { "type_Code__CODE_TYPE" } },
	{ AT(stream), false, { "type_InstructionStream__INSTRUCTION_STREAM_TYPE", "type_Code__CODE_TYPE" } },
	{ AT(text_end), false, { "FirstNonstringType" } },
	{ AT(function_shared), false, { "class_JSFunction__shared__SharedFunctionInfo" } },
	{ AT(shared_name),
	  false,
	  { "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
	    "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
	    "class_SharedFunctionInfo__name_or_scope_info__Object" } },
	{ AT(shared_script),
	  false,
	  { "class_SharedFunctionInfo__script__Tagged_HeapObject_",
	    "class_SharedFunctionInfo__script_or_debug_info__HeapObject" } },
	{ AT(bytecodes_first), false, { "class_BytecodeArray__data__uintptr_t" } },
	{ AT(scope_first), false, { "scopeinfo_idx_first_vars" } },
	{ AT(stream_start),
	  false,
	  { "class_InstructionStream__instruction_start__uintptr_t",
	    "class_Code__instruction_start__uintptr_t" } },
	{ AT(baseline), false, { "CodeKindBaseline" } },
	{ AT(inlined_literals), true, { "DeoptimizationDataLiteralArrayIndex" } },
	{ AT(inlined_positions), true, { "DeoptimizationDataInliningPositionsIndex" } },
	{ AT(entry), false, { "frametype_EntryFrame" } },
	{ AT(construct_entry), false, { "frametype_ConstructEntryFrame" } },
	{ AT(exits[0]), false, { "frametype_ExitFrame" } },
	{ AT(exits[1]), false, { "frametype_BuiltinExitFrame" } },
	{ AT(exits[2]), true, { "frametype_ApiCallbackExitFrame" } },
	{ AT(exits[3]), true, { "frametype_ApiConstructExitFrame" } },
	{ AT(exits[4]), true, { "frametype_ApiNamedAccessorExitFrame" } },
	{ AT(exits[5]), true, { "frametype_ApiIndexedAccessorExitFrame" } },
	{ AT(exits[6]), true, { "frametype_ApiAccessorExitFrame" } },
};

static bool read_constant(const struct dl_phdr_info *info, const char *name, int32_t *value)
{
	char symbol[NAME_BYTES_MAX] = PREFIX;
	uintptr_t at;

	strncpy(symbol + sizeof(PREFIX) - 1, name, sizeof(symbol) - sizeof(PREFIX));
	at = language_symbol(info, symbol, STT_OBJECT);
	if (at)
		memcpy(value, (const void *)at, sizeof(*value));
	return at;
}

static const struct node_version *find_version(const struct dl_phdr_info *info)
{
	uintptr_t major = language_symbol(info, "_ZN2v88internal7Version6major_E", STT_OBJECT);
	uintptr_t minor = language_symbol(info, "_ZN2v88internal7Version6minor_E", STT_OBJECT);

	for (size_t i = 0; major && minor && i < sizeof(versions) / sizeof(versions[0]); i++)
		if (*(const int *)major == versions[i].major && *(const int *)minor == versions[i].minor)
			return &versions[i];
	return NULL;
}

bool node_layout_read(const struct dl_phdr_info *info, struct node_layout *layout)
{
	int32_t value;

	/* What a version does not publish has the same index in each of them. */
	*layout = (struct node_layout){ .version = find_version(info) };
	if (!layout->version)
		return false;
	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
		if (!read_constant(info, required[i].name, &value) || value != required[i].value)
			return false;
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		bool is_known = false;

		value = -1;
		for (int n = 0; n < 3 && constants[i].names[n] && !is_known; n++)
			is_known = read_constant(info, constants[i].names[n], &value);
		if (!is_known && !constants[i].is_optional)
			return false;
		memcpy((char *)layout + constants[i].to, &value, sizeof(value));
	}
	if (layout->inlined_literals < 0) {
		layout->inlined_literals = 2;
		layout->inlined_positions = 7;
	}
	return true;
}
