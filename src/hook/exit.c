/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that end the process, its program or a thread (exit.h).
 *
 * A signal that is pending at exec would end the new program, which has no handler for it: kernels
 * before 6.13 do not drop the signals that timers have queued. So the thread's timers are stopped
 * before. If exec fails, they start again with the thread's next query.
 */
#include "hook/exit.h"

#include <stdlib.h>

#include "process/exec.h"

static const struct exit_callbacks *callbacks;

void exit_follow(const struct exit_callbacks *given)
{
	/* release: its content is read on other threads */
	__atomic_store_n(&callbacks, given, __ATOMIC_RELEASE);
}

static void before_process_ends(void)
{
	const struct exit_callbacks *now = __atomic_load_n(&callbacks, __ATOMIC_ACQUIRE);

	if (now)
		now->process_ends();
}

static void (*real_exit_at_once)(int) __attribute__((noreturn));

static void __attribute__((noreturn)) queryprof_exit_at_once(int status)
{
	before_process_ends();
	real_exit_at_once(status);
}

static void (*real_exit_thread)(void *) __attribute__((noreturn));

static void __attribute__((noreturn)) queryprof_exit_thread(void *result)
{
	const struct exit_callbacks *now = __atomic_load_n(&callbacks, __ATOMIC_ACQUIRE);

	if (now)
		now->thread_ends();
	real_exit_thread(result);
}

void queryprof_before_exec(void) __attribute__((visibility("hidden"), used));

void queryprof_before_exec(void)
{
	before_process_ends();
	sampler_before_exec();
}

/* Some take any number of arguments one by one, so the call continues unchanged, with all
 * registers in which arguments are passed. The section is restored: without optimization the
 * compiler writes the next variable after this, in the section that it assumes. */
#if defined(__x86_64__)
#define PASS_ON_BODY(name)                                                                                   \
	"	endbr64\n"                                                                                         \
	"	sub $56, %rsp\n"                                                                                   \
	"	.cfi_adjust_cfa_offset 56\n"                                                                       \
	"	mov %rdi, (%rsp)\n"                                                                                \
	"	mov %rsi, 8(%rsp)\n"                                                                               \
	"	mov %rdx, 16(%rsp)\n"                                                                              \
	"	mov %rcx, 24(%rsp)\n"                                                                              \
	"	mov %r8, 32(%rsp)\n"                                                                               \
	"	mov %r9, 40(%rsp)\n"                                                                               \
	"	mov %rax, 48(%rsp)\n"                                                                              \
	"	call queryprof_before_exec\n"                                                                      \
	"	mov (%rsp), %rdi\n"                                                                                \
	"	mov 8(%rsp), %rsi\n"                                                                               \
	"	mov 16(%rsp), %rdx\n"                                                                              \
	"	mov 24(%rsp), %rcx\n"                                                                              \
	"	mov 32(%rsp), %r8\n"                                                                               \
	"	mov 40(%rsp), %r9\n"                                                                               \
	"	mov 48(%rsp), %rax\n"                                                                              \
	"	add $56, %rsp\n"                                                                                   \
	"	.cfi_adjust_cfa_offset -56\n"                                                                      \
	"	jmp *queryprof_real_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define PASS_ON_BODY(name)                                                                                   \
	"	hint #34\n" /* bti c */                                                                      \
	"	stp x29, x30, [sp, #-80]!\n"                                                                       \
	"	.cfi_def_cfa_offset 80\n"                                                                          \
	"	.cfi_offset 29, -80\n"                                                                             \
	"	.cfi_offset 30, -72\n"                                                                             \
	"	stp x0, x1, [sp, #16]\n"                                                                           \
	"	stp x2, x3, [sp, #32]\n"                                                                           \
	"	stp x4, x5, [sp, #48]\n"                                                                           \
	"	stp x6, x7, [sp, #64]\n"                                                                           \
	"	bl queryprof_before_exec\n"                                                                        \
	"	ldp x0, x1, [sp, #16]\n"                                                                           \
	"	ldp x2, x3, [sp, #32]\n"                                                                           \
	"	ldp x4, x5, [sp, #48]\n"                                                                           \
	"	ldp x6, x7, [sp, #64]\n"                                                                           \
	"	ldp x29, x30, [sp], #80\n"                                                                         \
	"	.cfi_restore 29\n"                                                                                 \
	"	.cfi_restore 30\n"                                                                                 \
	"	.cfi_def_cfa_offset 0\n"                                                                           \
	"	adrp x16, queryprof_real_" #name "\n"                                                        \
	"	ldr x16, [x16, :lo12:queryprof_real_" #name "]\n"                                            \
	"	br x16\n"
#else
#error "queryprof supports x86-64 and aarch64"
#endif

#define PASS_ON(name)                                                                                        \
	void (*queryprof_real_##name)(void) __attribute__((visibility("hidden")));                           \
	void queryprof_##name(void) __attribute__((visibility("hidden")));                                   \
	__asm__(".pushsection .text\n"                                                                       \
	        ".p2align 4\n"                                                                               \
	        ".globl queryprof_" #name "\n"                                                               \
	        ".hidden queryprof_" #name "\n"                                                              \
	        ".type queryprof_" #name ", %function\n"                                                     \
	        "queryprof_" #name ":\n"                                                                     \
	        "	.cfi_startproc\n" PASS_ON_BODY(name) "	.cfi_endproc\n"                               \
	                                                     ".size queryprof_" #name                        \
	                                                     ", . - queryprof_" #name "\n"                   \
	                                                     ".popsection\n")

#define EACH_EXEC(_)                                                                                         \
	_(execve);                                                                                           \
	_(execv);                                                                                            \
	_(execvp);                                                                                           \
	_(execvpe);                                                                                          \
	_(fexecve);                                                                                          \
	_(execl);                                                                                            \
	_(execle);                                                                                           \
	_(execlp)

EACH_EXEC(PASS_ON);

static int add_exec(struct import_hook *hooks)
{
	int count = 0;

#define ADD(name) hooks[count++] = import_hook_of(#name, &queryprof_real_##name, (void *)queryprof_##name)
	EACH_EXEC(ADD);
#undef ADD
	return count;
}

int exit_hooks(struct import_hook hooks[EXIT_HOOKS_MAX])
{
	const struct exit_callbacks *now = __atomic_load_n(&callbacks, __ATOMIC_ACQUIRE);

	if (now)
		at_quick_exit(now->process_ends);
	hooks[0] = import_hook_of("_exit", &real_exit_at_once, (void *)queryprof_exit_at_once);
	hooks[1] = import_hook_of("_Exit", NULL, (void *)queryprof_exit_at_once);
	hooks[2] = import_hook_of("pthread_exit", &real_exit_thread, (void *)queryprof_exit_thread);
	return 3 + add_exec(hooks + 3);
}
