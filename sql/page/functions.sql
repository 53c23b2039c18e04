-- SPDX-License-Identifier: Apache-2.0
-- The functions of page/stacks.sql. A stack identifies each by its index in this list, from 0.
SELECT function, module FROM temp.page_functions ORDER BY id;
