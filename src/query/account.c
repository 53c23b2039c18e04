/* SPDX-License-Identifier: Apache-2.0 */
#include "query/account.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "base/cancel.h"
#include "base/sys.h"
#include "query/cpu_clock.h"

/* The second of the kernel's three numbers: the time in a run queue, in ns. */
static uint64_t read_delay(void)
{
	char text[96], *at = text;
	int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	ssize_t size = file >= 0 ? read(file, text, sizeof(text) - 1) : 0;
	uint64_t delay = 0;

	if (file >= 0)
		close(file);
	text[size > 0 ? size : 0] = '\0';
	while (*at != '\0' && *at != ' ')
		at++;
	for (at += *at == ' '; *at >= '0' && *at <= '9'; at++)
		delay = delay * 10 + (uint64_t)(*at - '0');
	return delay;
}

/* A thread that was never switched was in no run queue, and the first reading of the delay costs
 * most: about 30 us for each thread, because /proc has to make its files, and to remove them when
 * it ends. So a new thread that was never switched has no delay yet, except the one before its
 * first instruction. */
void account_read(struct thread *thread)
{
	struct thread_account *account = &thread->account;
	const uint64_t voluntary = account->voluntary_switches, involuntary = account->involuntary_switches;
	int saved_errno = errno, cancel;
	struct rusage usage;
	const bool is_known = getrusage(RUSAGE_THREAD, &usage) == 0;

	if (is_known) {
		account->major_faults = (uint64_t)usage.ru_majflt;
		account->minor_faults = (uint64_t)usage.ru_minflt;
		account->voluntary_switches = (uint64_t)usage.ru_nvcsw;
		account->involuntary_switches = (uint64_t)usage.ru_nivcsw;
	}
	if (account->voluntary_switches != voluntary || account->involuntary_switches != involuntary) {
		cancel = cancel_hold(); /* the thread may have a connection's mutex */
		account->run_delay_ns = read_delay();
		cancel_release(cancel);
	}
	cpu_clock_before(thread, is_known ? &usage : NULL);
	account->at_ns = thread->cpu_read_at_ns;
	errno = saved_errno;
}

/* A forked child's numbers begin at 0. */
static uint64_t since(uint64_t start, uint64_t now)
{
	return now > start ? now - start : 0;
}

struct thread_account account_since(const struct thread_account *start, const struct thread_account *now)
{
	return (struct thread_account){
		.at_ns = since(start->at_ns, now->at_ns),
		.run_delay_ns = since(start->run_delay_ns, now->run_delay_ns),
		.major_faults = since(start->major_faults, now->major_faults),
		.minor_faults = since(start->minor_faults, now->minor_faults),
		.voluntary_switches = since(start->voluntary_switches, now->voluntary_switches),
		.involuntary_switches = since(start->involuntary_switches, now->involuntary_switches),
	};
}
