-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see sides.sql). After diff/scaled_stacks.sql. Two builds of a library differ in addresses and
-- version, so a function is identified by its name and its module's name without the part after ".so".
SELECT name, library, self, self_samples, self_square, total, total_samples, total_square FROM temp.report_functions;
