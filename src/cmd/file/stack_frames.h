/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions on the stacks of the open trace file. Reports and exports of one file use the same names.
 *
 * The command's own SQL functions of a stack, which is the id of a row in `stacks`, or a JSON array of
 * addresses. They return NULL if the stack has no such frame. An id is faster, because its row is read once.
 * stackFunctions(stack, full): its functions, a line each, leaf first. A function without a name is
 * module+0x12, or 0x12 outside modules. After the program's own functions (frame_owner.h), or with `full`
 * after all, the line ends with the source line: (file.c:12). Inlined functions come before the one that
 * contains them. stackModules(stack), stackOwners(stack): the module of each, and 1 for the program's own,
 * else 0. stackCaller(stack): the program's function nearest to the leaf, and in the next line its source
 * line or nothing. stackPlace(stack): the same, or without such a function the one nearest to the leaf that
 * is not queryprof's. stackShape(stack, full): a number that identifies the text of stackFunctions() until
 * the file is closed. stackPhase(stack): -2 with sqlite3_prepare…() on it, else -3 with a function that
 * resets or finalizes statements, else -1.
 *
 * The virtual table temp.report_functions sums up the table temp.report_stacks (stack_id, samples, value,
 * square) by function: self_… of stacks whose leaf is the function, total_… of all stacks with it, each
 * counted once. Code without a name is one function per module: (module), or (no module). A function is
 * identified by its name and by the column that the statement reads, either `module` or `library`: the module
 * up to ".so", in any version.
 */
#pragma once

#include <sqlite3.h>

struct address_space;
struct stack_frames;

/* Adds these to `db`, the open file, whose addresses are in `space`. An SQLite result. The connection frees
 * the memory. */
int stack_frames_add(sqlite3 *db, const struct address_space *space, struct stack_frames **frames);

/* Call it before the connection is closed. NULL is ignored. */
void stack_frames_end(struct stack_frames *frames);
