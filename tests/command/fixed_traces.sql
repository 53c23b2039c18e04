-- SPDX-License-Identifier: Apache-2.0
-- Loaded after fixed.sql: traces of requests. A search renders on another thread and writes together with another
-- request; one request fails; a short one has no end.
INSERT INTO threads (id, process, thread_id, thread_name) VALUES (11, 1, 103, 'render'), (12, 1, 104, 'writer');

INSERT INTO span_sites (id, name, file, line, function, statement)
VALUES (1, 'GET /search', 'shop.cpp', 10, 'handle', 0), (2, 'authenticate', 'shop.cpp', 20, 'check', 0),
       (3, '', '', 0, '', 901), (4, 'render', 'page.cpp', 5, 'render', 0), (5, 'row', 'page.cpp', 50, 'row', 0),
       (6, 'write log', 'log.cpp', 7, 'write', 0), (7, 'POST /order', 'shop.cpp', 90, 'order', 0),
       (8, 'prepare', '', 0, '', 901);
INSERT INTO span_sites (id, name, file, line, function, statement, wait) VALUES (9, '', '', 0, '', 0, 3 << 8 | 2);

-- The search takes 100 ms from 1795000000.5 s on: authenticate, a statement, render on another thread.
INSERT INTO span_batches (id, trace_hi, trace_lo, parent, first_span, thread, start_ns, dropped, flags, lasted_ns, count,
                          statements, duration_ns, spans)
VALUES (1, 0x4bf92f3577b34da6, 0x23ce929d0e0e4736, 0x00f067aa0ba902b7, 1000, 1, 1795000000500000000, 0, 3, 100000000, 4, 2,
        100500000, '[[1,0,0,100000000,5000000],[2,1,1000000,9000000],[8,2,11000000,1000000],0,[3,4,12000000,60000000],0,0,0]'),
       (2, 0x4bf92f3577b34da6, 0x23ce929d0e0e4736, 1000, 2000, 11, 1795000000572000000, 0, 0, 25000000, 8, 0, NULL,
        '[[4,0,0,25000000,1000000],[5,1,1000000,3000000],[5,2,4000000,3000000],[5,3,7000000,3000000],'
        || '[5,4,10000000,3000000],[5,5,13000000,3000000],[5,6,16000000,3000000],[5,7,19000000,6000000]]'),
       (3, 0x4bf92f3577b34da6, 0x23ce929d0e0e4736, 1000, 3000, 12, 1795000000580000000, 0, 0, 40000000, 1, 0, NULL,
        '[[6,0,0,40000000]]'),
       (4, 0x00000000000000aa, 0x00000000000000bb, 0, 4000, 1, 1795000000560000000, 3, 2, 65000000, 3, 1, 65000000,
        '[[7,0,0,65000000,45000000,4,0],[3,1,5000000,20000000,8000000,5,0],0,[9,2,6000000,12000000]]'),
       (5, 0x00000000000000aa, 0x00000000000000cc, 0, 5000, 1, 1795000002000000000, 0, 2, 4000, 1, 0, 4000,
        '[[7,0,1000,3000,3000,1,0]]');
INSERT INTO span_waits (start_ns, thread, duration_ns, span) VALUES (1795000000566000000, 1, 12000000, 4003);
INSERT INTO span_links (batch, trace_hi, trace_lo, parent) VALUES (3, 0x00000000000000aa, 0x00000000000000bb, 4000);
INSERT INTO span_notes (batch, span, is_event, note)
VALUES (1, 1000, 0, '"user":"Jörg"'), (1, 1000, 0, '"items":3'), (1, 1001, 1, '{"name":"cached","time_ns":1795000000502000000}');

-- Samples in the statement, and in the rendering.
INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (11, 11, 'CPU', 4000000, 1);
INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size, span)
VALUES (1795000000520000001, 1, 0, 1, 0, 1, 0, 0, 1004), (1795000000530000001, 1, 0, 2, 0, 2, 0, 0, 1004),
       (1795000000540000001, 1, 0, 1, 0, 1, 0, 0, 1004), (1795000000580000001, 11, 0, 6, 0, 1, 0, 0, 2002);
