/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions on the stacks of the open trace file, as the exports name them, so that a report and an
 * export of one file say the same.
 *
 * The command's own SQL functions of a stack, which is a row's number in `stacks`, or a JSON array of
 * addresses; NULL if it has no such frame. A number is faster: the row is read once. stackFunctions(stack,
 * full): its functions, a line each, leaf first. A function without a name is module+0x12, or 0x12 in no
 * module; behind one of the program's (frame_owner.h), or with `full` behind any, is its place: (file.c:12).
 * Inlined functions come before the one that they were inlined into. stackModules(stack), stackOwners(stack):
 * the module of each, and 1 for one of the program's, else 0. stackCaller(stack): the program's function that
 * is nearest to the leaf, and its place or nothing in the next line. stackShape(stack, full): a number that
 * stands for what stackFunctions() has, until the file is closed. stackPhase(stack): -2 with
 * sqlite3_prepare…() on it, else -3 with a function that resets or finalizes statements, else -1.
 *
 * The virtual table temp.report_functions sums up the table temp.report_stacks (stack_id, samples, value,
 * square) by function: self_… of stacks whose leaf is the function, total_… of all stacks
 * with it, each counted once. Code without a name is one function a module: (module), or (no module). A
 * function is its name and the column that the statement reads, either `module` or `library`: the module up
 * to ".so", whatever its version is.
 */
#pragma once

#include <sqlite3.h>

struct address_space;
struct stack_frames;

/* Gives `db`, the open file, whose addresses are in `space`, these. An SQLite result. The connection frees
 * the memory. */
int stack_frames_add(sqlite3 *db, const struct address_space *space, struct stack_frames **frames);

/* Before the connection is closed. NULL is ignored. */
void stack_frames_end(struct stack_frames *frames);
