/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of dlsym() depends on its caller: RTLD_NEXT means the objects after the caller, and
 * RTLD_DEFAULT begins with those that the caller was loaded with. So a wrapper that calls it would
 * change the result. This one first determines whether the result will be a hooked function, and
 * otherwise jumps to the real one, which sees the host as its caller. For RTLD_DEFAULT it also checks
 * the caller's own libraries: if they have another function of the name, the caller may get that one
 * (RTLD_DEEPBIND).
 */
#include "hook/lookup.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "base/loader.h"

static void *(*replacement_of)(const char *symbol, const void *real);
static const char *family_of_names;

/* Both are named by the assembly below. */
void *(*queryprof_real_dlsym)(void *, const char *)__attribute__((visibility("hidden")));
void *queryprof_resolved(void *handle, const char *symbol, const void *caller)
	__attribute__((visibility("hidden"), used));
void *queryprof_dlsym(void *handle, const char *symbol) __attribute__((visibility("hidden")));

#if defined(__GLIBC__)
/* NULL: the program, which also stands for code of no object. */
static const char *find_name(const void *code)
{
	const struct link_map *object;
	Dl_info location;

	/* The program's is "". */
	return dladdr1(code, &location, (void **)&object, RTLD_DL_LINKMAP) && *object->l_name ? object->l_name
	                                                                                      : NULL;
}
#else
static const char *find_name(const void *code)
{
	const struct link_map *program;
	Dl_info location;

	/* The program's is the one by which it was executed. */
	return dladdr(code, &location) && !dlinfo(dlopen(NULL, RTLD_LAZY), RTLD_DI_LINKMAP, &program) &&
	                       location.dli_fname != program->l_name
	               ? location.dli_fname
	               : NULL;
}
#endif

/* The function in the object of `caller` or its dependencies, NULL: none. False: that object
 * cannot be searched. */
static bool find_own(const char *symbol, const void *caller, void **found)
{
	const char *name = find_name(caller);
	void *handle = loader_find(name ? name : "", 0);

	if (!handle)
		return false;
	*found = queryprof_real_dlsym(handle, symbol);
	dlclose(handle);
	return true;
}

/* NULL: the real dlsym() does the call. */
void *queryprof_resolved(void *handle, const char *symbol, const void *caller)
{
	void *found, *own = NULL;

	/* Only dlsym() knows the objects after its caller, and a caller that needs those wraps the
	 * function itself. */
	if (handle == RTLD_NEXT || !symbol || strncmp(symbol, family_of_names, strlen(family_of_names)))
		return NULL;
	if (handle == RTLD_DEFAULT && !find_own(symbol, caller, &own))
		return NULL;
#if !defined(__GLIBC__)
	(void)dlerror(); /* of find_own(): musl's dlsym() leaves it if it finds the symbol */
#endif
	/* Last, so that the host does not get an error of this call from dlerror(). */
	found = queryprof_real_dlsym(handle, symbol);
	return found && (!own || own == found) ? replacement_of(symbol, found) : NULL;
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".globl queryprof_dlsym\n"
        ".hidden queryprof_dlsym\n"
        ".type queryprof_dlsym, @function\n"
        "queryprof_dlsym:\n"
        "	.cfi_startproc\n"
        "	endbr64\n"
        "	push %rdi\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	push %rsi\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	sub $8, %rsp\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	mov 24(%rsp), %rdx\n"
        "	call queryprof_resolved\n"
        "	add $8, %rsp\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	pop %rsi\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	pop %rdi\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	test %rax, %rax\n"
        "	jz 1f\n"
        "	ret\n"
        "1:	jmp *queryprof_real_dlsym(%rip)\n"
        "	.cfi_endproc\n"
        ".size queryprof_dlsym, . - queryprof_dlsym\n"
        ".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".globl queryprof_dlsym\n"
        ".hidden queryprof_dlsym\n"
        ".type queryprof_dlsym, %function\n"
        "queryprof_dlsym:\n"
        "	.cfi_startproc\n"
        "	hint #34\n" /* bti c */
        "	stp x29, x30, [sp, #-32]!\n"
        "	.cfi_def_cfa_offset 32\n"
        "	.cfi_offset 29, -32\n"
        "	.cfi_offset 30, -24\n"
        "	stp x0, x1, [sp, #16]\n"
        "	mov x2, x30\n"
        "	bl queryprof_resolved\n"
        "	mov x16, x0\n"
        "	ldp x0, x1, [sp, #16]\n"
        "	ldp x29, x30, [sp], #32\n"
        "	.cfi_restore 29\n"
        "	.cfi_restore 30\n"
        "	.cfi_def_cfa_offset 0\n"
        "	cbz x16, 1f\n"
        "	mov x0, x16\n"
        "	ret\n"
        "1:	adrp x16, queryprof_real_dlsym\n"
        "	ldr x16, [x16, :lo12:queryprof_real_dlsym]\n"
        "	br x16\n"
        "	.cfi_endproc\n"
        ".size queryprof_dlsym, . - queryprof_dlsym\n"
        ".popsection\n");
#else
#error "queryprof supports x86-64 and aarch64"
#endif

bool lookup_hook(struct import_hook *hook, const char *family,
                 void *(*replace)(const char *symbol, const void *real))
{
	replacement_of = replace;
	family_of_names = family;
	*hook = import_hook_of("dlsym", &queryprof_real_dlsym, (void *)queryprof_dlsym);
	return queryprof_real_dlsym != NULL;
}
