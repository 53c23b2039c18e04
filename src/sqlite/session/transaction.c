/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/session/transaction.h"

#include <stddef.h>
#include <string.h>

#include "collect/transaction_states.h"

__attribute__((no_sanitize("thread"))) /* which does not support fences */
void
transaction_reset(struct transaction *transaction)
{
	memset(transaction, 0, offsetof(struct transaction, state));
	if (!transaction->state)
		transaction->state = shared_entries_acquire(&transaction_states);
	if (!transaction->state)
		transaction->state = &transaction->own_state;
	/* Relaxed, and first: another process may look at the transaction of an earlier session. */
	__atomic_store_n(&transaction->state->number, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memset(transaction->state, 0, offsetof(struct transaction_state, text));
}
