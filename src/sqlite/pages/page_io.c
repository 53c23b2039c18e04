/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/pages/page_io.h"

#include <string.h>

#include "collect/slots.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "query/statement_stats.h"
#include "settings/setting.h"
#include "sqlite/locks/lock_holders.h"
#include "sqlite/pages/page_memory.h"
#include "sqlite/session/run.h"
#include "sqlite/session/transaction.h"
#include "wire/page_record.h"

bool page_io_is_on;
static bool base;

/* Pages were written meanwhile without being seen. */
static int apply(const struct setting_value *value, char **reason)
{
	struct page_files *files = page_memory_known_files();

	(void)reason;
	if (value->number && files && !__atomic_load_n(&page_io_is_on, __ATOMIC_RELAXED))
		page_files_forget_pages(files);
	return QP_OK;
}

SETTING_LIST(page_io, .is_process_wide = true, .value = &page_io_is_on, .base = &base, SETTING_ON_OFF(false),
             .apply = apply, .name = "query_profiler_page_io",
             .description = "Counts the pages that statements read and write, by table and index");

/* A call of a file's method. */
enum page_event_kind {
	EVENT_READ,
	EVENT_WAL_READ,
	EVENT_WRITE,      /* to the database, by a commit */
	EVENT_COPY,       /* to the database, by a checkpoint */
	EVENT_WAL_WRITE,  /* the page of a frame, with its header if that was written just before */
	EVENT_WAL_HEAD,   /* the header, or a further part of the page */
	EVENT_WAL_HEADER, /* of the whole WAL; no page */
	EVENT_WAL_LOOK,   /* the same, read */
	EVENT_JOURNAL,
	EVENT_JOURNAL_READ,
};

struct page_event {
	struct page_database *database;
	uint64_t statement; /* as statement_stats_find() has it; 0: not known */
	uint32_t page, bytes, times;
	uint32_t life;      /* of the database; in a later one the event cannot be counted any more */
	uint8_t kind, type; /* enum page_event_kind; of page_owners_find() */
	bool is_again;      /* the page had been written before */
};

struct page_sum {
	struct page_database *database; /* NULL: the place is free */
	uint64_t statement;
	uint32_t btree, class; /* of struct page_owner, or CLASS_...; btree: if not known, a page that leads
	                          to it, or 0: several */
	uint64_t start_ns;
	/* Its thread increases them; everything else happens under `busy`. recorded: the part that records
	 * have. */
	uint64_t counts[PAGE_COUNTS], recorded[PAGE_COUNTS];
};

/* Further classes of sums. */
enum { CLASS_JOURNAL = 16, CLASS_WAL_HEADER };

/* Events of pages that are not known yet are kept until the transaction ends. Those that do not fit in
 * `first` are in chunks, and equal ones of them are mostly one. */
#define EVENTS 512u
#define EVENTS_IN_CHUNK 4096u
#define EVENT_CHUNKS 64u
#define SUMS 256u /* a power of two */
#define SUMS_USED (SUMS / 4 * 3)
#define SUMS_FOR_PAGES (SUMS / 4) /* while there are fewer, a page that is not known has a sum of its own */
#define RECENT 32u                /* a power of two */
#define FLUSH_NS 1000000000u

/* The sum of usual reads: of pages whose words have this value. */
struct recent_sum {
	uint32_t value, types; /* of page_owners_known(), page_owners_types() */
	struct page_sum *sum;
};

struct page_io {
	uint32_t busy;               /* atomic: a thread works on the sums */
	uint32_t thread_id;          /* whose they are; 0: nothing is valid yet */
	bool has_written;            /* so a page's b-tree is known at the end of the transaction only */
	const sqlite3_file *written; /* the transaction's database; NULL: not known */
	uint32_t events;             /* used, */
	uint32_t room;               /* of so many, */
	uint32_t due;                /* to be counted when there are so many */
	uint32_t sums;
	uint32_t reads; /* that were counted without an event, since the time was read */
	uint64_t flushed_ns;
	struct page_sum *newest;
	/* The file of the newest call, and sums of b-trees, as long as page_owners_version is this. */
	uint32_t version;
	const sqlite3_file *file;
	struct page_file *found;
	struct recent_sum recent[RECENT];
	/* The call of the host that the newest one was inside of, seen from this frame. */
	const void *frame;
	uint64_t call;
	uint32_t *equal; /* EVENTS_IN_CHUNK of them: places of events in the list */
	struct page_event *chunks[EVENT_CHUNKS];
	struct page_event first[EVENTS];
	struct page_sum sum[SUMS];
};

static struct page_event *event_at(struct page_io *io, uint32_t index)
{
	return index < EVENTS
	               ? &io->first[index]
	               : &io->chunks[(index - EVENTS) / EVENTS_IN_CHUNK][(index - EVENTS) % EVENTS_IN_CHUNK];
}

static uint64_t now_here(void)
{
	return fast_clock_ns(&thread_current->clock);
}

/* --- the record ------------------------------------------------------------------------------------ */

/* The b-tree of a page may be known since it was counted. */
static struct page_owner owner_now(const struct page_sum *sum)
{
	const struct page_owner then = { (enum page_class)sum->class, sum->btree };
	struct page_owner now = then;

	if (then.class == PAGE_CLASS_UNKNOWN && then.btree)
		now = page_owners_find(&sum->database->owners, then.btree, PAGE_TYPE_UNSEEN, true);
	return now.class == PAGE_CLASS_BTREE || now.class == PAGE_CLASS_OVERFLOW ? now : then;
}

static enum page_kind kind_of(const struct page_sum *sum, struct page_owner owner,
                              const struct page_btree *btree)
{
	switch ((uint32_t)owner.class) {
	case PAGE_CLASS_OVERFLOW: return PAGE_OVERFLOW;
	case PAGE_CLASS_FREE: return PAGE_FREELIST;
	case PAGE_CLASS_POINTER_MAP: return PAGE_POINTER_MAP;
	case CLASS_JOURNAL: return PAGE_JOURNAL;
	case CLASS_WAL_HEADER: return PAGE_WAL_HEADER;
	case PAGE_CLASS_BTREE: break;
	default: return PAGE_UNKNOWN;
	}
	if (!btree)
		return PAGE_UNKNOWN;
	if (btree->root == 1)
		return PAGE_SCHEMA;
	if (btree->is_index)
		return PAGE_INDEX;
	if (page_owners_is_shadow(&sum->database->owners, btree))
		return PAGE_SHADOW;
	return __atomic_load_n(&btree->is_without_rowid, __ATOMIC_RELAXED) ? PAGE_WITHOUT_ROWID : PAGE_TABLE;
}

/* False: the ring has no room. */
static bool write_record(const struct page_io *io, const struct page_sum *sum,
                         const uint64_t counts[PAGE_COUNTS], const struct thread *thread, struct ring *ring,
                         bool is_last)
{
	static const struct page_btree none = { 0 };
	const struct page_database *database = sum->database;
	const struct page_owner owner = owner_now(sum);
	const bool is_page = owner.class == PAGE_CLASS_UNKNOWN;
	const struct page_btree *known = is_page ? NULL : page_owners_btree(&database->owners, owner.btree);
	const struct page_btree *btree = known ? known : &none;
	const uint32_t path_size = database->path_size;
	const uint8_t name_size = btree->name_size, table_size = btree->table_size;
	const size_t size = sizeof(struct page_record) + path_size + name_size + table_size;
	struct page_record *record = is_last ? ring_reserve(ring, size) : ring_try_reserve(ring, size);
	char *to;

	if (!record)
		return false;
	*record = (struct page_record){
		.statement = sum->statement ? statement_stats_hash(sum->statement) : 0,
		.start_realtime_ns = sum->start_ns + thread->realtime_offset_ns,
		.kind = kind_of(sum, owner, known),
		.root = is_page ? sum->btree : btree->root,
		.thread_id = io->thread_id,
		.database_size = path_size,
		.btree_size = name_size,
		.table_size = table_size,
	};
	memcpy(record->counts, counts, sizeof(record->counts));
	to = record->text;
	memcpy(to, database->path, path_size);
	memcpy(to += path_size, btree->name, name_size);
	memcpy(to + name_size, btree->table, table_size);
	ring_commit(ring, record, RECORD_PAGE_IO);
	return true;
}

/* What was counted since the sum's previous record. False: the ring has no room; if it is_last, the ring has
 * counted the record as lost. */
static bool record_sum(const struct page_io *io, struct page_sum *sum, const struct thread *thread,
                       uint64_t now_ns, bool is_last)
{
	struct ring *ring = sampler_ring();
	uint64_t counts[PAGE_COUNTS], any = 0;

	for (unsigned i = 0; i < PAGE_COUNTS; i++)
		any |= counts[i] = __atomic_load_n(&sum->counts[i], __ATOMIC_RELAXED) - sum->recorded[i];
	if (ring && any && !write_record(io, sum, counts, thread, ring, is_last) && !is_last)
		return false;
	for (unsigned i = 0; i < PAGE_COUNTS; i++)
		sum->recorded[i] += counts[i];
	sum->start_ns = now_ns;
	return true;
}

/* Those of another thread, which may be increasing one meanwhile. */
static void record_sums(struct page_io *io, const struct thread *thread, uint64_t now_ns)
{
	for (uint32_t i = 0; i < SUMS; i++)
		if (io->sum[i].database)
			record_sum(io, &io->sum[i], thread, now_ns, true);
}

/* The calling thread's sums. What has no room remains for the next time, unless it is the last one. */
static void flush(struct page_io *io, const struct thread *thread, uint64_t now_ns, bool is_last)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < SUMS && left < io->sums; i++) {
		struct page_sum *sum = &io->sum[i];

		if (!sum->database)
			continue;
		if (!record_sum(io, sum, thread, now_ns, is_last)) {
			left++;
			continue;
		}
		__atomic_fetch_sub(&sum->database->sums, 1, __ATOMIC_RELEASE);
		/* A sum that remains after this place may be begun a second time, and has two records. */
		*sum = (struct page_sum){ 0 };
		io->sums--;
	}
	io->newest = NULL;
	memset(io->recent, 0, sizeof(io->recent));
	io->flushed_ns = now_ns;
}

/* --- sums ------------------------------------------------------------------------------------------ */

static bool is_of(const struct page_sum *sum, const struct page_event *event, struct page_owner owner)
{
	return sum->database == event->database && sum->statement == event->statement &&
	       sum->btree == owner.btree && sum->class == (uint32_t)owner.class;
}

static struct recent_sum *recent_of(struct page_io *io, uint32_t value, uint64_t statement)
{
	return &io->recent[(value ^ (uint32_t)(statement * 0x9e3779b97f4a7c15ull >> 32)) & (RECENT - 1)];
}

static struct page_sum *find_sum(struct page_io *io, const struct page_event *event, struct page_owner owner)
{
	const uint64_t words[] = { event->statement, (uint64_t)owner.btree << 8 | owner.class };
	uint32_t i = hash_pointer(event->database) ^
	             (uint32_t)((words[0] * 31 + words[1]) * 0x9e3779b97f4a7c15ull >> 40);

	if (io->newest && is_of(io->newest, event, owner))
		return io->newest;
	for (i &= SUMS - 1; io->sum[i].database; i = (i + 1) & (SUMS - 1))
		if (is_of(&io->sum[i], event, owner))
			return io->newest = &io->sum[i];
	if (io->sums >= SUMS_USED)
		return NULL;
	io->sums++;
	__atomic_fetch_add(&event->database->sums, 1, __ATOMIC_RELAXED);
	io->sum[i] = (struct page_sum){ .database = event->database,
		                        .statement = event->statement,
		                        .btree = owner.btree,
		                        .class = owner.class };
	return io->newest = &io->sum[i];
}

/* Another thread may write the sum to the ring meanwhile. */
static inline void increase(uint64_t *count, uint64_t by)
{
	__atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + by, __ATOMIC_RELAXED);
}

static void add(struct page_sum *sum, const struct page_event *event)
{
	static const struct {
		bool reads, writes;
		enum page_count bytes;
	} counted[] = {
		[EVENT_READ] = { .reads = true, .bytes = PAGE_READ_BYTES },
		[EVENT_WAL_READ] = { .reads = true, .bytes = PAGE_WAL_READ_BYTES },
		[EVENT_WRITE] = { .writes = true, .bytes = PAGE_DATABASE_BYTES },
		[EVENT_COPY] = { .bytes = PAGE_DATABASE_BYTES },
		[EVENT_WAL_WRITE] = { .writes = true, .bytes = PAGE_WAL_BYTES },
		[EVENT_WAL_HEAD] = { .bytes = PAGE_WAL_BYTES },
		[EVENT_WAL_HEADER] = { .bytes = PAGE_WAL_BYTES },
		[EVENT_WAL_LOOK] = { .bytes = PAGE_WAL_READ_BYTES },
		[EVENT_JOURNAL] = { .bytes = PAGE_JOURNAL_BYTES },
		[EVENT_JOURNAL_READ] = { .bytes = PAGE_JOURNAL_READ_BYTES },
	};
	const uint64_t times = event->times;

	increase(&sum->counts[PAGE_READS], counted[event->kind].reads * times);
	increase(&sum->counts[PAGE_WRITES], counted[event->kind].writes * times);
	increase(&sum->counts[PAGE_REWRITTEN], counted[event->kind].writes * event->is_again * times);
	increase(&sum->counts[counted[event->kind].bytes], event->bytes * times);
}

static struct page_owner owner_of(const struct page_event *event, bool is_end)
{
	switch ((enum page_event_kind)event->kind) {
	case EVENT_JOURNAL:
	case EVENT_JOURNAL_READ: return (struct page_owner){ (enum page_class)CLASS_JOURNAL, 0 };
	case EVENT_WAL_HEADER:
	case EVENT_WAL_LOOK: return (struct page_owner){ (enum page_class)CLASS_WAL_HEADER, 0 };
	default: return page_owners_find(&event->database->owners, event->page, event->type, is_end);
	}
}

/* Later reads of the b-tree's pages find the sum directly. */
static void remember(struct page_io *io, const struct page_event *event, struct page_sum *sum)
{
	const struct page_owners *owners = &event->database->owners;
	const uint32_t value = page_owners_known(owners, event->page, event->type);
	const uint32_t types = value ? page_owners_types(owners, sum->btree) : 0;

	if (types)
		*recent_of(io, value, event->statement) = (struct recent_sum){ value, types, sum };
}

static void count_event(struct page_io *io, const struct page_event *event, struct page_owner owner,
                        const struct thread *thread, uint64_t now_ns)
{
	struct page_sum *sum = find_sum(io, event, owner);

	if (!sum) {
		flush(io, thread, now_ns, true);
		sum = find_sum(io, event, owner);
	}
	if (!sum->start_ns)
		sum->start_ns = now_ns;
	add(sum, event);
	if (owner.class == PAGE_CLASS_BTREE && (event->kind == EVENT_READ || event->kind == EVENT_WAL_READ))
		remember(io, event, sum);
}

/* Whether later pages may show what the event's page is: not if nothing of the database is understood. */
static bool may_be_known(const struct page_event *event)
{
	return page_owners_layout(&event->database->owners).size != 0;
}

/* Makes room for more events that wait. False: no memory, or they are too many. */
static bool grow(struct page_io *io)
{
	const uint32_t chunk = (io->room - EVENTS) / EVENTS_IN_CHUNK;

	if (page_memory_is_scarce())
		return false;
	if (!io->equal)
		io->equal = page_memory_allocate(EVENTS_IN_CHUNK * sizeof(*io->equal));
	if (!io->equal || chunk >= EVENT_CHUNKS ||
	    !(io->chunks[chunk] = page_memory_allocate(EVENTS_IN_CHUNK * sizeof(struct page_event))))
		return false;
	io->room += EVENTS_IN_CHUNK;
	return true;
}

static bool is_equal(const struct page_event *one, const struct page_event *other)
{
	return one->database == other->database && one->life == other->life &&
	       one->statement == other->statement && one->page == other->page && one->bytes == other->bytes &&
	       one->kind == other->kind && one->type == other->type && one->is_again == other->is_again;
}

/* The event waits, at the end of the `kept` ones, or as one with an equal one. Returns how many wait. */
static uint32_t keep(struct page_io *io, uint32_t kept, const struct page_event *event)
{
	uint32_t *equal = io->equal ? &io->equal[(event->page * 16 + event->kind) % EVENTS_IN_CHUNK] : NULL;

	/* The place may be of an earlier list. */
	if (equal && *equal < kept && is_equal(event_at(io, *equal), event)) {
		event_at(io, *equal)->times += event->times;
		return kept;
	}
	*event_at(io, kept) = *event;
	if (equal)
		*equal = kept;
	return kept + 1;
}

/* Counts what is listed. `is_end`: of a transaction; until then, pages that are not known remain in the list.
 */
static void count_events(struct page_io *io, const struct thread *thread, uint64_t now_ns, bool is_end)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < io->events; i++) {
		const struct page_event event = *event_at(io, i);
		struct page_owner owner;

		if (event.life != page_database_life(event.database))
			continue;
		owner = owner_of(&event, is_end);
		if (owner.class == PAGE_CLASS_UNKNOWN && event.page && may_be_known(&event)) {
			if (!is_end) {
				kept = keep(io, kept, &event);
				continue;
			}
			if (event.kind == EVENT_READ || event.kind == EVENT_WAL_READ)
				page_owners_miss(&event.database->owners, now_ns);
		}
		if (owner.class == PAGE_CLASS_UNKNOWN && io->sums < SUMS_FOR_PAGES)
			owner.btree = event.type == BTREE_NONE
			                      ? event.page
			                      : page_owners_top(&event.database->owners, event.page);
		count_event(io, &event, owner, thread, now_ns);
	}
	io->events = kept;
	/* In steps, so that no event is looked at often. */
	io->due = kept > EVENTS / 2 ? 2 * kept : EVENTS;
	while (io->due > io->room && grow(io)) {
	}
	if (io->due > io->room) {
		io->due = io->room;
		if (kept > io->room / 2)
			count_events(io, thread, now_ns, true);
	}
}

static bool acquire(struct page_io *io)
{
	/* Acquire: what another thread has done with it. */
	return !__atomic_exchange_n(&io->busy, 1, __ATOMIC_ACQUIRE);
}

static void release(struct page_io *io)
{
	__atomic_store_n(&io->busy, 0, __ATOMIC_RELEASE);
}

/* False: another thread writes the sums. */
static bool count(struct page_io *io, bool is_end)
{
	const struct thread *thread = thread_current;
	const uint64_t now_ns = now_here();

	if (!acquire(io))
		return false;
	count_events(io, thread, now_ns, is_end);
	io->reads = 0;
	if (now_ns - io->flushed_ns >= FLUSH_NS)
		flush(io, thread, now_ns, false);
	release(io);
	return true;
}

static bool may_write(const sqlite3_file *database_file)
{
	const struct lock_file *entry = database_file ? lock_file_find(database_file) : NULL;

	return entry && lock_file_locks(entry) >> HOLD_WRITE & 1;
}

static void end_transaction(struct page_io *io)
{
	if (io->events || io->reads)
		count(io, true);
	io->has_written = false;
	io->written = NULL;
}

void page_io_end(struct page_io *io)
{
	/* The lock of another connection than the one that has written, which continues. */
	if (!io->has_written || !may_write(io->written))
		end_transaction(io);
}

void page_io_flush_all(void)
{
	const uint64_t now_ns = thread_current ? now_here() : clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < slots_count(); i++) {
		const struct thread *thread = slots_get(i);
		/* Acquire: with the thread that made it. */
		struct page_io *io = __atomic_load_n(&thread->page_io, __ATOMIC_ACQUIRE);

		if (!io || !acquire(io))
			continue;
		if (thread == thread_current) {
			count_events(io, thread, now_ns, true);
			flush(io, thread, now_ns, true);
		} else {
			record_sums(io, thread, now_ns);
		}
		release(io);
	}
}

/* --- calls of methods -------------------------------------------------------------------------------- */

/* The thread has no sums yet, or its slot has those of an earlier thread, or a fork has zeroed them.
 * NULL: no memory, or another thread writes the sums just now. */
static __attribute__((noinline)) struct page_io *take_io(struct thread *thread)
{
	struct page_io *io = thread->page_io;

	if (!io && !(io = page_memory_allocate(sizeof(*io))))
		return NULL;
	__atomic_store_n(&thread->page_io, io, __ATOMIC_RELEASE);
	if (!acquire(io))
		return NULL;
	if (io->thread_id) {
		count_events(io, thread, now_here(), true);
		flush(io, thread, now_here(), true);
	} else {
		io->room = io->due = EVENTS;
	}
	io->has_written = false;
	io->written = NULL;
	io->frame = NULL;
	io->file = NULL;
	io->thread_id = thread->id;
	release(io);
	return io;
}

static inline struct page_io *io_of(struct thread *thread)
{
	struct page_io *io = thread->page_io;

	return __builtin_expect(io && io->thread_id == thread->id, 1) ? io : take_io(thread);
}

static uint32_t page_size_of(const struct page_database *database)
{
	const struct page_layout layout = page_owners_layout(&database->owners);

	return layout.size ? layout.size : __atomic_load_n(&database->page_size, __ATOMIC_RELAXED);
}

static bool is_page_size(uint32_t bytes)
{
	return bytes >= 512 && bytes <= 65536 && !(bytes & (bytes - 1));
}

/* What the database's pages show, and the rest of the event. */
static void see_database(struct page_event *event, const struct page_access *access)
{
	struct page_database *database = event->database;
	const uint32_t size = page_size_of(database);
	const bool may_be_page = is_page_size(access->bytes) && !(access->offset & (access->bytes - 1));

	/* SQLite may also read the beginning of an overflow page alone. Another size than before is that of
	 * page 1 first. */
	if (may_be_page && (!size || access->bytes == size || !access->offset)) {
		if (size != access->bytes)
			__atomic_store_n(&database->page_size, access->bytes, __ATOMIC_RELAXED);
		event->page = (uint32_t)(access->offset >> __builtin_ctz(access->bytes)) + 1;
		event->type = (uint8_t)page_type_of(event->page, access->data);
		if (event->kind == EVENT_WRITE ||
		    page_owners_want(&database->owners, event->page, event->type))
			page_owners_see(&database->owners, event->page, access->data, access->bytes,
			                event->kind == EVENT_WRITE);
	} else if (!may_be_page || !access->is_write) {
		event->page = size ? (uint32_t)(access->offset / size) + 1 : access->offset < 512;
	}
	if (event->kind == EVENT_WRITE)
		event->is_again = page_owners_set_written(&database->owners, event->page);
}

/* The header of the frame, whose page is written now, is the newest event. */
static void join_head(struct page_io *io, struct page_event *event)
{
	const struct page_event *head = io->events ? event_at(io, io->events - 1) : NULL;

	if (!head || head->kind != EVENT_WAL_HEAD || head->bytes != WAL_FRAME_BYTES ||
	    head->page != event->page || head->database != event->database ||
	    head->statement != event->statement)
		return;
	event->bytes += head->bytes;
	io->events--;
}

static void see_wal_page(struct page_event *event, const struct page_access *access, struct page_file *file)
{
	struct page_database *database = event->database;
	const uint32_t size = __atomic_load_n(&database->page_size, __ATOMIC_RELAXED);
	const uint32_t frame_size = size + WAL_FRAME_BYTES;
	const uint64_t at = (uint64_t)access->offset - WAL_HEADER_BYTES;
	/* Mostly it is the page of the newest header, or the next frame, which needs no division. */
	const uint64_t since = (uint64_t)(access->offset - file->frame_at);
	const uint64_t within = since < frame_size ? since : since == frame_size ? 0 : at % frame_size;
	const uint8_t *bytes = access->data;
	struct wal_frame head;

	if (within == 0 && btree_page_read_frame(bytes, access->bytes, &head)) {
		event->page = head.page;
		if (access->is_write) {
			file->frame_at = access->offset;
			file->frame_page = head.page;
		}
		if (access->bytes == WAL_FRAME_BYTES)
			return;
		bytes += WAL_FRAME_BYTES;
	} else {
		event->page = access->is_write && since < frame_size && file->frame_page
		                      ? file->frame_page
		                      : page_files_frame_page(file, (uint32_t)(at / frame_size) + 1);
		if (within != WAL_FRAME_BYTES && access->is_write) {
			event->kind = EVENT_WAL_HEAD;
			return;
		}
	}
	if (event->page && bytes + size == (const uint8_t *)access->data + access->bytes) {
		event->type = (uint8_t)page_type_of(event->page, bytes);
		if (access->is_write || page_owners_want(&database->owners, event->page, event->type))
			page_owners_see(&database->owners, event->page, bytes, size, access->is_write);
	}
	if (access->is_write)
		event->is_again = page_owners_set_written(&database->owners, event->page);
}

static void see_wal(struct page_event *event, const struct page_access *access, struct page_file *file)
{
	struct page_database *database = event->database;
	struct wal_header header;

	if (access->offset < WAL_HEADER_BYTES) {
		event->kind = access->is_write ? EVENT_WAL_HEADER : EVENT_WAL_LOOK;
		if (access->offset == 0 && btree_page_read_wal(access->data, access->bytes, &header))
			__atomic_store_n(&database->page_size, header.page_size, __ATOMIC_RELAXED);
		if (access->is_write) {
			file->frame_at = WAL_HEADER_BYTES;
			file->frame_page = 0;
		}
		return;
	}
	if (access->bytes == WAL_FRAME_BYTES)
		event->kind = access->is_write ? EVENT_WAL_HEAD : EVENT_WAL_LOOK;
	else
		event->kind = access->is_write ? EVENT_WAL_WRITE : EVENT_WAL_READ;
	/* A page that is read alone has the database's size. */
	if (!__atomic_load_n(&database->page_size, __ATOMIC_RELAXED) && is_page_size(access->bytes))
		__atomic_store_n(&database->page_size, access->bytes, __ATOMIC_RELAXED);
	if (__atomic_load_n(&database->page_size, __ATOMIC_RELAXED))
		see_wal_page(event, access, file);
}

/* The file of the access; what is remembered is of the version from now on. */
static __attribute__((noinline)) struct page_file *find_file(struct page_io *io,
                                                             const struct page_access *access)
{
	struct page_files *files = page_memory_files();
	const uint32_t version = __atomic_load_n(&page_owners_version, __ATOMIC_ACQUIRE);
	struct page_file *file = files ? page_files_find(files, access) : NULL;

	if (io->version != version)
		memset(io->recent, 0, sizeof(io->recent));
	io->file = file ? access->file : NULL;
	io->found = file;
	io->version = version;
	return file;
}

static bool is_current(const struct page_io *io, const sqlite3_file *file)
{
	/* Acquire: with the change. */
	return io->file == file && io->version == __atomic_load_n(&page_owners_version, __ATOMIC_ACQUIRE);
}

/* A read outside of a transaction that has written: the pages that lead to this one were read before. */
static bool count_now(struct page_io *io, const struct page_event *event)
{
	const struct page_owner owner = owner_of(event, false);

	if (io->has_written || owner.class == PAGE_CLASS_UNKNOWN ||
	    (io->reads >= EVENTS && !count(io, false)) || !acquire(io))
		return false;
	count_event(io, event, owner, thread_current, now_here());
	release(io);
	io->reads++;
	return true;
}

/* The first one that a transaction writes to remains, and ends it. */
static void note_written(struct page_io *io, const struct page_file *file, const sqlite3_file *written)
{
	const sqlite3_file *database = file->role == PAGE_FILE_DATABASE ? written : file->database_file;

	if (file->role != PAGE_FILE_JOURNAL && io->written != database && !may_write(io->written))
		io->written = database;
	io->has_written = true;
}

static __attribute__((noinline)) void see(struct page_io *io, const struct page_access *access)
{
	struct page_file *file = is_current(io, access->file) ? io->found : find_file(io, access);
	struct page_event event = {
		.statement = access->run ? access->run->statement : 0,
		.bytes = access->bytes,
		.times = 1,
		.type = PAGE_TYPE_UNSEEN,
	};

	if (!file || !file->database)
		return;
	event.database = file->database;
	event.life = page_database_life(file->database);
	switch (file->role) {
	case PAGE_FILE_DATABASE:
		event.kind = !access->is_write                                          ? EVENT_READ
		             : __atomic_load_n(&file->database->wals, __ATOMIC_RELAXED) ? EVENT_COPY
		                                                                        : EVENT_WRITE;
		see_database(&event, access);
		break;
	case PAGE_FILE_WAL: see_wal(&event, access, file); break;
	default: event.kind = access->is_write ? EVENT_JOURNAL : EVENT_JOURNAL_READ; break;
	}
	if (access->is_write)
		note_written(io, file, access->file);
	/* What the pages show is known nevertheless. */
	if (access->run && !access->run->settings.log)
		return;
	if (event.kind == EVENT_WAL_WRITE)
		join_head(io, &event);
	if (!access->is_write && count_now(io, &event))
		return;
	if (io->events < io->due || count(io, false))
		*event_at(io, io->events++) = event;
}

/* The page that is read as a whole; 0: not known without a look. */
static inline uint32_t page_read(const struct page_file *file, uint32_t size, sqlite3_int64 offset)
{
	const uint64_t at = (uint64_t)offset - WAL_HEADER_BYTES;
	uint32_t frame;

	if (file->role == PAGE_FILE_DATABASE)
		return offset & (size - 1) ? 0 : (uint32_t)((uint64_t)offset >> __builtin_ctz(size)) + 1;
	if (file->role != PAGE_FILE_WAL || at > UINT32_MAX)
		return 0;
	frame = (uint32_t)at / (size + WAL_FRAME_BYTES);
	return (uint32_t)at - frame * (size + WAL_FRAME_BYTES) == WAL_FRAME_BYTES
	               ? page_files_known_frame(file, frame + 1)
	               : 0;
}

/* The run for which SQLite makes the call. Mostly, the call of the host is the same as before. */
static inline const struct run *run_of(struct page_io *io, const void *frame)
{
	struct calling *calling = calling_current;
	const struct call_slot *slot = calling ? calling->slots : NULL;

	if (!slot || calling->used != 1 || io->frame != frame || call_slot_number(slot) != io->call) {
		slot = calling ? calling_find(calling, frame) : NULL;
		io->frame = slot && calling->used == 1 ? frame : NULL;
		io->call = slot ? call_slot_number(slot) : 0;
	}
	return slot && slot->run && !slot->run->is_queryprofs ? slot->run : NULL;
}

/* The usual read: the page shows nothing new, and its b-tree has a sum. */
static inline bool count_read(struct page_io *io, const struct run *run, const sqlite3_file *read,
                              const void *data, uint32_t bytes, sqlite3_int64 offset)
{
	const struct page_file *file = io->found;
	struct page_database *database;
	struct recent_sum *recent;
	uint32_t page, type, value;

	if (!run || !run->settings.log || io->has_written || !is_current(io, read) ||
	    !(database = file->database) || bytes != page_owners_layout(&database->owners).size || !bytes ||
	    io->reads >= EVENTS || !(page = page_read(file, bytes, offset)))
		return false;
	type = page_type_of(page, data);
	value = page_owners_known(&database->owners, page, type);
	recent = recent_of(io, value, run->statement);
	if (!value || recent->value != value || !(recent->types >> type & 1) ||
	    recent->sum->database != database || recent->sum->statement != run->statement)
		return false;
	increase(&recent->sum->counts[PAGE_READS], 1);
	increase(&recent->sum->counts[file->role == PAGE_FILE_WAL ? PAGE_WAL_READ_BYTES : PAGE_READ_BYTES],
	         bytes);
	io->reads++;
	return true;
}

void page_io_see_read(sqlite3_file *file, const void *data, int bytes, sqlite3_int64 offset)
{
	struct thread *thread = thread_current;
	struct page_io *io = io_of(thread);
	const struct run *run;

	if (!io)
		return;
	run = run_of(io, __builtin_frame_address(0));
	if (!count_read(io, run, file, data, (uint32_t)bytes, offset))
		see(io, &(struct page_access){ .file = file,
		                               .data = data,
		                               .bytes = (uint32_t)bytes,
		                               .offset = offset,
		                               .run = run });
}

void page_io_see_write(sqlite3_file *file, const void *data, int bytes, sqlite3_int64 offset)
{
	struct thread *thread = thread_current;
	struct page_io *io = io_of(thread);

	if (io)
		see(io, &(struct page_access){ .file = file,
		                               .data = data,
		                               .bytes = (uint32_t)bytes,
		                               .offset = offset,
		                               .is_write = true,
		                               .run = run_of(io, __builtin_frame_address(0)) });
}

void page_io_see_close(const sqlite3_file *file)
{
	struct page_files *files = page_memory_known_files();
	struct page_io *io = thread_current ? thread_current->page_io : NULL;

	if (!files)
		return;
	/* The owners of a database that nobody has open are forgotten. */
	if (io)
		end_transaction(io);
	page_files_remove(files, file);
}

void page_io_see_open(const sqlite3_file *file)
{
	struct page_files *files = page_memory_known_files();

	if (files)
		page_files_remove(files, file);
}

/* The next recording has only what is counted later. */
static void forget_counts(struct page_io *io)
{
	for (uint32_t i = 0; i < SUMS; i++)
		for (unsigned j = 0; j < PAGE_COUNTS; j++)
			io->sum[i].recorded[j] = __atomic_load_n(&io->sum[i].counts[j], __ATOMIC_RELAXED);
}

void page_io_forget(void)
{
	struct page_files *files = page_memory_known_files();

	if (files)
		page_files_forget(files);
	for (uint32_t i = 0; i < slots_count(); i++) {
		/* Acquire: with the thread that made it. */
		struct page_io *io = __atomic_load_n(&slots_get(i)->page_io, __ATOMIC_ACQUIRE);

		if (io && acquire(io)) {
			forget_counts(io);
			release(io);
		}
	}
}

void page_io_see_unmap(const sqlite3_file *database_file)
{
	struct page_files *files = page_memory_known_files();

	if (files)
		page_files_unmap(files, database_file);
}
