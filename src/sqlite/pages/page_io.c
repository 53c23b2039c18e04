/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/pages/page_io.h"

#include <string.h>

#include "collect/slots.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "query/statement_stats.h"
#include "settings/setting.h"
#include "sqlite/pages/page_memory.h"
#include "sqlite/session/run.h"
#include "wire/page_record.h"

bool page_io_is_on;
static bool base;

SETTING_LIST(page_io, .is_process_wide = true, .value = &page_io_is_on, .base = &base, SETTING_ON_OFF(false),
             .name = "query_profiler_page_io",
             .description = "Counts the pages that statements read and write, by table and index");

/* A call of a file's method. */
enum page_event_kind {
	EVENT_READ,
	EVENT_WAL_READ,
	EVENT_WRITE,      /* to the database, by a commit */
	EVENT_COPY,       /* to the database, by a checkpoint */
	EVENT_WAL_WRITE,  /* the page of a frame */
	EVENT_WAL_HEAD,   /* its header, or a further part of its page */
	EVENT_WAL_HEADER, /* of the whole WAL; no page */
	EVENT_WAL_LOOK,   /* the same, read */
	EVENT_JOURNAL,
	EVENT_JOURNAL_READ,
};

struct page_event {
	struct page_database *database;
	uint64_t statement; /* as statement_stats_find() has it; 0: not known */
	uint32_t page, bytes;
	uint8_t kind, type; /* enum page_event_kind; of page_owners_find() */
	bool is_again;      /* the page had been written before */
};

struct page_sum {
	struct page_database *database; /* NULL: the place is free */
	uint64_t statement;
	uint32_t btree,
		class; /* of struct page_owner, or CLASS_...; btree: if not known, the page, or 0: several */
	uint64_t start_ns;
	uint64_t counts[PAGE_COUNTS];
};

/* Further classes of sums. */
enum { CLASS_JOURNAL = 16, CLASS_WAL_HEADER };

#define EVENTS 512       /* at first; */
#define EVENTS_MOST 8192 /* for a transaction with so many pages that are not known yet */
#define SUMS 256u        /* a power of two */
#define SUMS_USED (SUMS / 4 * 3)
#define SUMS_FOR_PAGES (SUMS / 4) /* while there are fewer, a page that is not known has a sum of its own */
#define FLUSH_NS 1000000000u

struct page_io {
	uint32_t busy;   /* atomic: a thread works on the sums */
	uint32_t events; /* used, */
	uint32_t room;   /* of so many, */
	uint32_t due;    /* to be counted when there are so many */
	uint32_t sums;
	uint64_t flushed_ns;
	struct page_sum *newest;
	/* The file of the newest call, as long as none has been closed. */
	const sqlite3_file *file;
	struct page_file *found;
	uint32_t version;
	struct page_event *event;
	struct page_event first[EVENTS];
	struct page_sum sum[SUMS];
};

static uint64_t now_here(void)
{
	return fast_clock_ns(&thread_current->clock);
}

/* --- the record ------------------------------------------------------------------------------------ */

static enum page_kind kind_of(const struct page_sum *sum, const struct page_btree *btree)
{
	switch (sum->class) {
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
static bool write_record(const struct page_sum *sum, const struct thread *thread, struct ring *ring,
                         bool is_last)
{
	static const struct page_btree none = { 0 };
	const struct page_database *database = sum->database;
	const bool is_page = sum->class == PAGE_CLASS_UNKNOWN;
	const struct page_btree *known = is_page ? NULL : page_owners_btree(&database->owners, sum->btree);
	const struct page_btree *btree = known ? known : &none;
	const size_t size =
		sizeof(struct page_record) + database->path_size + btree->name_size + btree->table_size;
	struct page_record *record = is_last ? ring_reserve(ring, size) : ring_try_reserve(ring, size);
	char *to;

	if (!record)
		return false;
	*record = (struct page_record){
		.statement = sum->statement ? statement_stats_hash(sum->statement) : 0,
		.start_realtime_ns = sum->start_ns + thread->realtime_offset_ns,
		.kind = kind_of(sum, known),
		.root = is_page ? sum->btree : btree->root,
		.thread_id = thread->id,
		.database_size = database->path_size,
		.btree_size = btree->name_size,
		.table_size = btree->table_size,
	};
	memcpy(record->counts, sum->counts, sizeof(record->counts));
	to = record->text;
	memcpy(to, database->path, database->path_size);
	memcpy(to += database->path_size, btree->name, btree->name_size);
	memcpy(to + btree->name_size, btree->table, btree->table_size);
	ring_commit(ring, record, RECORD_PAGE_IO);
	return true;
}

/* What has no room remains for the next time, unless it is the last one. */
static void flush(struct page_io *io, const struct thread *thread, uint64_t now_ns, bool is_last)
{
	struct ring *ring = sampler_ring();
	uint32_t left = 0;

	for (uint32_t i = 0; i < SUMS && left < io->sums; i++) {
		struct page_sum *sum = &io->sum[i];

		if (!sum->database)
			continue;
		if (ring && !write_record(sum, thread, ring, is_last) && !is_last) {
			left++;
			continue;
		}
		__atomic_fetch_sub(&sum->database->sums, 1, __ATOMIC_RELEASE);
		/* A sum that remains after this place may be begun a second time, and has two records. */
		*sum = (struct page_sum){ 0 };
		io->sums--;
	}
	io->newest = NULL;
	io->flushed_ns = now_ns;
}

/* --- sums ------------------------------------------------------------------------------------------ */

static bool is_of(const struct page_sum *sum, const struct page_event *event, struct page_owner owner)
{
	return sum->database == event->database && sum->statement == event->statement &&
	       sum->btree == owner.btree && sum->class == (uint32_t)owner.class;
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

static void add(struct page_sum *sum, const struct page_event *event)
{
	uint64_t *counts = sum->counts;

	switch ((enum page_event_kind)event->kind) {
	case EVENT_READ:
		counts[PAGE_READS]++;
		counts[PAGE_READ_BYTES] += event->bytes;
		break;
	case EVENT_WAL_READ:
		counts[PAGE_READS]++;
		counts[PAGE_WAL_READ_BYTES] += event->bytes;
		break;
	case EVENT_WRITE:
		counts[PAGE_WRITES]++;
		counts[PAGE_REWRITTEN] += event->is_again;
		counts[PAGE_DATABASE_BYTES] += event->bytes;
		break;
	case EVENT_COPY: counts[PAGE_DATABASE_BYTES] += event->bytes; break;
	case EVENT_WAL_WRITE:
		counts[PAGE_WRITES]++;
		counts[PAGE_REWRITTEN] += event->is_again;
		counts[PAGE_WAL_BYTES] += event->bytes;
		break;
	case EVENT_WAL_HEAD:
	case EVENT_WAL_HEADER: counts[PAGE_WAL_BYTES] += event->bytes; break;
	case EVENT_WAL_LOOK: counts[PAGE_WAL_READ_BYTES] += event->bytes; break;
	case EVENT_JOURNAL: counts[PAGE_JOURNAL_BYTES] += event->bytes; break;
	case EVENT_JOURNAL_READ: counts[PAGE_JOURNAL_READ_BYTES] += event->bytes; break;
	}
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
}

/* Whether later pages may show what the event's page is: not if nothing of the database is understood. */
static bool may_be_known(const struct page_event *event)
{
	return event->database->owners.layout.size != 0;
}

/* Makes room for more events that wait. False: no memory, or they are too many. */
static bool grow(struct page_io *io)
{
	struct page_event *more =
		io->room < EVENTS_MOST ? page_memory_allocate(EVENTS_MOST * sizeof(*more)) : NULL;

	if (!more)
		return false;
	memcpy(more, io->event, io->events * sizeof(*more));
	io->event = more;
	io->room = EVENTS_MOST;
	return true;
}

/* Counts what is listed. `is_end`: of a transaction; until then, pages that are not known remain in the list.
 */
static void count_events(struct page_io *io, const struct thread *thread, uint64_t now_ns, bool is_end)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < io->events; i++) {
		const struct page_event *event = &io->event[i];
		struct page_owner owner = owner_of(event, is_end);

		if (owner.class == PAGE_CLASS_UNKNOWN && event->page && may_be_known(event)) {
			if (!is_end) {
				io->event[kept++] = *event;
				continue;
			}
			if (event->kind == EVENT_READ || event->kind == EVENT_WAL_READ)
				page_owners_miss(&event->database->owners, now_ns);
		}
		if (owner.class == PAGE_CLASS_UNKNOWN && io->sums < SUMS_FOR_PAGES)
			owner.btree = event->page;
		count_event(io, event, owner, thread, now_ns);
	}
	io->events = kept;
	/* In steps, so that no event is looked at often. */
	io->due = kept > EVENTS / 2 ? 2 * kept : EVENTS;
	if (io->due > io->room && !grow(io)) {
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

/* False: the process ends, and another thread writes the sums. */
static bool count(struct page_io *io, bool is_end)
{
	const struct thread *thread = thread_current;
	const uint64_t now_ns = now_here();

	if (!acquire(io))
		return false;
	count_events(io, thread, now_ns, is_end);
	if (now_ns - io->flushed_ns >= FLUSH_NS)
		flush(io, thread, now_ns, false);
	release(io);
	return true;
}

void page_io_end(struct page_io *io)
{
	if (io->events)
		count(io, true);
}

void page_io_flush_all(void)
{
	if (!thread_current)
		return;
	for (uint32_t i = 0; i < slots_count(); i++) {
		const struct thread *thread = slots_get(i);
		/* Acquire: with the thread that made it. */
		struct page_io *io = __atomic_load_n(&thread->page_io, __ATOMIC_ACQUIRE);

		if (!io || !acquire(io))
			continue;
		if (thread == thread_current)
			count_events(io, thread, now_here(), true);
		flush(io, thread, now_here(), true);
		release(io);
	}
}

/* --- calls of methods -------------------------------------------------------------------------------- */

/* Of zeroed memory, as it is in a forked child, too. */
static void begin(struct page_io *io)
{
	io->event = io->first;
	io->room = io->due = EVENTS;
}

static struct page_io *make_io(struct thread *thread)
{
	struct page_io *made = page_memory_allocate(sizeof(*made));

	if (made)
		begin(made);
	__atomic_store_n(&thread->page_io, made, __ATOMIC_RELEASE);
	return made;
}

static bool is_page_size(uint32_t bytes)
{
	return bytes >= 512 && bytes <= 65536 && !(bytes & (bytes - 1));
}

/* What the database's pages show, and the rest of the event. */
static void see_database(struct page_event *event, const struct page_access *access)
{
	struct page_database *database = event->database;
	const uint32_t size = database->page_size;

	if (is_page_size(access->bytes) && access->offset % access->bytes == 0) {
		if (size != access->bytes)
			__atomic_store_n(&database->page_size, access->bytes, __ATOMIC_RELAXED);
		event->page = (uint32_t)(access->offset / access->bytes) + 1;
		event->type = (uint8_t)page_type_of(event->page, access->data);
		if (event->kind == EVENT_WRITE || page_owners_want(&database->owners, event->type))
			page_owners_see(&database->owners, event->page, access->data, access->bytes,
			                event->kind == EVENT_WRITE);
	} else {
		event->page = size ? (uint32_t)(access->offset / size) + 1 : access->offset < 512;
	}
	if (event->kind == EVENT_WRITE)
		event->is_again = page_owners_set_written(&database->owners, event->page);
}

static void see_wal_page(struct page_event *event, const struct page_access *access, struct page_file *file)
{
	struct page_database *database = event->database;
	const uint32_t size = database->page_size;
	const uint32_t frame_size = size + WAL_FRAME_BYTES;
	const uint64_t at = (uint64_t)access->offset - WAL_HEADER_BYTES;
	const uint32_t frame = (uint32_t)(at / frame_size) + 1, within = (uint32_t)(at % frame_size);
	const uint8_t *bytes = access->data;
	struct wal_frame head;

	if (within == 0 && btree_page_read_frame(bytes, access->bytes, &head)) {
		event->page = head.page;
		if (access->is_write) {
			file->frame = frame;
			file->frame_page = head.page;
		}
		if (access->bytes == WAL_FRAME_BYTES) {
			event->kind = access->is_write ? EVENT_WAL_HEAD : EVENT_WAL_LOOK;
			return;
		}
		bytes += WAL_FRAME_BYTES;
	} else {
		event->page = access->is_write && frame == file->frame ? file->frame_page
		                                                       : page_files_frame_page(file, frame);
		if (within != WAL_FRAME_BYTES && access->is_write) {
			event->kind = EVENT_WAL_HEAD;
			return;
		}
	}
	if (event->page && bytes + size == (const uint8_t *)access->data + access->bytes) {
		event->type = (uint8_t)page_type_of(event->page, bytes);
		if (access->is_write || page_owners_want(&database->owners, event->type))
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
		if (access->is_write)
			file->frame = 0;
		return;
	}
	event->kind = access->is_write ? EVENT_WAL_WRITE : EVENT_WAL_READ;
	/* A page that is read alone has the database's size. */
	if (!database->page_size && is_page_size(access->bytes))
		__atomic_store_n(&database->page_size, access->bytes, __ATOMIC_RELAXED);
	if (database->page_size)
		see_wal_page(event, access, file);
}

static __attribute__((noinline)) struct page_file *find_file(struct page_io *io,
                                                             const struct page_access *access)
{
	struct page_files *files = page_memory_files();
	const uint32_t version = __atomic_load_n(&page_files_version, __ATOMIC_ACQUIRE);
	struct page_file *file = files ? page_files_find(files, access) : NULL;

	io->file = file ? access->file : NULL;
	io->found = file;
	io->version = version;
	if (!io->room)
		begin(io);
	return file;
}

void page_io_see(const struct page_access *access)
{
	struct thread *thread = thread_current;
	struct page_io *io = thread->page_io;
	struct page_event *event;
	struct page_file *file;

	if (!io && !(io = make_io(thread)))
		return;
	file = io->file == access->file &&
	                       io->version == __atomic_load_n(&page_files_version, __ATOMIC_ACQUIRE)
	               ? io->found
	               : find_file(io, access);
	if (!file || !file->database || (access->run && !access->run->settings.log))
		return;
	if (io->events == io->due && !count(io, false))
		return;
	event = &io->event[io->events];
	*event = (struct page_event){
		.database = file->database,
		.statement = access->run ? access->run->statement : 0,
		.bytes = access->bytes,
		.type = PAGE_TYPE_UNSEEN,
	};
	switch (file->role) {
	case PAGE_FILE_DATABASE:
		event->kind = !access->is_write      ? EVENT_READ
		              : file->database->wals ? EVENT_COPY
		                                     : EVENT_WRITE;
		see_database(event, access);
		break;
	case PAGE_FILE_WAL: see_wal(event, access, file); break;
	default: event->kind = access->is_write ? EVENT_JOURNAL : EVENT_JOURNAL_READ; break;
	}
	io->events++;
}

void page_io_see_close(const sqlite3_file *file)
{
	struct page_files *files = page_memory_known_files();

	if (!files)
		return;
	/* The owners of a database that nobody has open are forgotten. */
	page_io_see_unlock();
	page_files_remove(files, file);
}

void page_io_forget(void)
{
	struct page_files *files = page_memory_known_files();

	if (files)
		page_files_forget(files);
}

void page_io_see_unmap(const sqlite3_file *database_file)
{
	struct page_files *files = page_memory_known_files();

	if (files)
		page_files_unmap(files, database_file);
}
