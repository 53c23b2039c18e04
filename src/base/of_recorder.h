/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of the recorder that inline functions of its headers read. The rest of the library (symbol,
 * store, frames, sql, entry) includes these headers, too, but its recorder may be another library's
 * (entry/linked_recorder.c). There a function has the address:
 *
 *	ADDRESS_OF_RECORDER(unsigned, debug_topics);
 *	#ifdef QUERYPROF_REST
 *	#define debug_topics (*debug_topics_address())
 *	#else
 *	extern unsigned debug_topics;
 *	#endif
 */
#pragma once

#define ADDRESS_OF_RECORDER(type, variable) type *variable##_address(void)

/* In the variable's file. For an array, the name of its first element. */
#define DEFINE_ADDRESS_OF_RECORDER(type, variable)                                                           \
	type *variable##_address(void)                                                                       \
	{                                                                                                    \
		return (type *)&variable;                                                                    \
	}
