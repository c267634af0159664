/* A look at every page of LMDB's file, before LMDB maps it.
 *
 * LMDB trusts its file: a page with a wrong pointer in it makes the process read, or write, somewhere else. So all that it
 * will follow is followed here first, with read() and with bounds: the two first pages, the tree of entries, the tree of
 * free pages. What it checks:
 *   the first pages   magic, version, size of a page, flags; the two are of successive commits, each in its place
 *   a page            lies in the file, says that it is itself, is of the kind that its depth wants, is met once
 *   what is on it     lies in the page, without gap or overlap; keys in order, and between those of the page above
 *   a long value      its pages likewise
 *   a free page       is in no tree, and in one list only; one that is not in the file is free
 *   each entry        its envelope, by the caller
 * What changes on the disk or in memory afterwards is not seen; nor is a page that went back, as a whole, to what it was at
 * an earlier commit and still fits.
 *
 * The format is that of LMDB 0.9, on a machine with 64 bits, lowest byte first. It is not documented but by its source; it has
 * not changed since 2013 and is guarded by a version in the first pages. In short:
 *   page    number u64, pad u16, kind u16, then `lower` u16, `upper` u16 (of a long value: count of pages u32)
 *           from byte 16 to `lower`: where on the page each node begins, u16; from `upper` to the end: the nodes
 *   node    size u32 or, in a branch, page u48; flags u16 (none in a branch); length of the key u16; key; value */
#include "store/store_int.h"

#include "base/check.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(size_t) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the layout below is that of such machines");

#define MAGIC UINT32_C(0xbeefc0de)
#define NO_PAGE UINT64_MAX

enum {
	DATA_VERSION = 1,
	PAGE_HEAD = 16,
	NODE_HEAD = 8,
	PAGE_LEAST = 512,
	PAGE_MOST = 32768,
	KIND_BRANCH = 1,
	KIND_LEAF = 2,
	KIND_LONG = 4,
	KIND_META = 8,
	NODE_LONG = 1,
	TREE_OF_NUMBERS = 8,
	DEPTH_MOST = 32,
	FIRST_PAGE = 2, /* after the two first ones */
};

struct page_head {
	uint64_t number;
	uint16_t pad;
	uint16_t kind;
	uint16_t lower;
	uint16_t upper;
};

struct tree {
	uint32_t pad; /* of the free pages' tree: size of a page */
	uint16_t flags;
	uint16_t depth;
	uint64_t branches, leaves, longs, entries;
	uint64_t root;
};

struct meta {
	uint32_t magic;
	uint32_t version;
	uint64_t address;
	uint64_t map_bytes;
	struct tree trees[2]; /* free pages, entries */
	uint64_t last_page;
	uint64_t number; /* of the commit */
};

_Static_assert(sizeof(struct page_head) == PAGE_HEAD && sizeof(struct tree) == 48 && sizeof(struct meta) == 136,
               "no holes");

struct walk {
	int fd;
	uint64_t file_bytes;
	uint32_t page_bytes;
	struct meta meta;    /* of the last commit */
	struct meta older;   /* of the one before */
	unsigned char *seen; /* a bit for each page */
	uint64_t *free_pages;
	uint64_t free_count, free_capacity;
	char *value; /* a long one, being looked at */
	size_t value_capacity;
	const struct probe_view *view;
	struct err *err;
};

/* One tree of the two, on the way down. */
struct descent {
	struct walk *walk;
	bool numbers; /* the tree of free pages: keys are numbers */
	uint64_t entries;
};

struct node {
	uint32_t size; /* of the value; a branch has a page instead */
	uint64_t page;
	uint16_t flags;
	struct str key;
	const char *value;
};

/* ---- Pages ---------------------------------------------------------------------------------------------------------- */

static int read_at(const struct walk *walk, uint64_t offset, void *out, size_t bytes)
{
	size_t done = 0;
	while (done < bytes) {
		ssize_t got = pread(walk->fd, (char *)out + done, bytes - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(walk->err, ERR_IO, "reading at byte %" PRIu64 ": %s", offset, strerror(errno));
		if (got == 0)
			return err_set(walk->err, ERR_CORRUPT, "it ends at byte %" PRIu64 ", in the middle", offset + done);
		done += (size_t)got;
	}
	return 0;
}

static bool see(struct walk *walk, uint64_t page)
{
	unsigned char *byte = &walk->seen[page / 8], bit = (unsigned char)(1 << page % 8);
	bool fresh = !(*byte & bit);
	*byte |= bit;
	return fresh;
}

static int take_page(struct walk *walk, uint64_t page, uint64_t count)
{
	if (page < FIRST_PAGE || page > walk->meta.last_page || count > walk->meta.last_page - page + 1)
		return err_set(walk->err, ERR_CORRUPT, "page %" PRIu64 " is named, and pages are from %d to %" PRIu64, page,
		               FIRST_PAGE, walk->meta.last_page);
	if (page + count > walk->file_bytes / walk->page_bytes)
		return err_set(walk->err, ERR_CORRUPT, "cut short: page %" PRIu64 " is needed, and there are %" PRIu64,
		               page + count - 1, walk->file_bytes / walk->page_bytes);
	for (uint64_t i = 0; i < count; i++)
		if (!see(walk, page + i))
			return err_set(walk->err, ERR_CORRUPT, "page %" PRIu64 " is used twice", page + i);
	return 0;
}

static int page_bad(const struct walk *walk, uint64_t page, const char *what)
{
	return err_set(walk->err, ERR_CORRUPT, "page %" PRIu64 ": %s", page, what);
}

static struct node node_at(const struct walk *walk, const char *page, uint32_t number, bool branch)
{
	uint16_t at, lo, hi, flags, key_length;
	memcpy(&at, page + PAGE_HEAD + 2 * (size_t)number, 2);
	const char *node = page + at;
	CHECK(at <= walk->page_bytes - NODE_HEAD);
	memcpy(&lo, node, 2);
	memcpy(&hi, node + 2, 2);
	memcpy(&flags, node + 4, 2);
	memcpy(&key_length, node + 6, 2);
	uint32_t low = (uint32_t)hi << 16 | lo;
	return (struct node){.size = branch ? 0 : low,
	                     .page = branch ? (uint64_t)flags << 32 | low : 0,
	                     .flags = branch ? 0 : flags,
	                     .key = str_make(node + NODE_HEAD, key_length),
	                     .value = node + NODE_HEAD + key_length};
}

/* The nodes cover the page from `upper` to its end, each byte once. */
static int check_tiles(const struct walk *walk, const char *page, const struct page_head *head, bool branch)
{
	uint16_t sizes[PAGE_MOST / 2];
	memset(sizes, 0, walk->page_bytes);
	uint32_t count = (uint32_t)(head->lower - PAGE_HEAD) / 2;
	for (uint32_t i = 0; i < count; i++) {
		uint16_t at;
		memcpy(&at, page + PAGE_HEAD + 2 * (size_t)i, 2);
		if (at % 2 != 0 || at < head->upper || at > walk->page_bytes - NODE_HEAD || sizes[at / 2] != 0)
			return page_bad(walk, head->number, "a node is not on the page, or twice");
		struct node node = node_at(walk, page, i, branch);
		uint64_t held = branch ? 0 : node.flags & NODE_LONG ? sizeof(uint64_t) : node.size;
		uint64_t size = (NODE_HEAD + node.key.length + held + 1) & ~UINT64_C(1);
		if (size > (uint64_t)(walk->page_bytes - at))
			return page_bad(walk, head->number, "a node does not end on the page");
		sizes[at / 2] = (uint16_t)size;
	}
	uint32_t at = head->upper, met = 0;
	while (at < walk->page_bytes && sizes[at / 2] != 0) {
		at += sizes[at / 2];
		met++;
	}
	if (at != walk->page_bytes || met != count)
		return page_bad(walk, head->number, "nodes overlap, or leave a gap");
	return 0;
}

static int read_page(const struct walk *walk, uint64_t number, bool branch, char *page, struct page_head *head)
{
	int code = read_at(walk, number * walk->page_bytes, page, walk->page_bytes);
	if (code)
		return code;
	memcpy(head, page, sizeof(*head));
	if (head->number != number)
		return page_bad(walk, number, "it says that it is another one");
	if (head->kind != (branch ? KIND_BRANCH : KIND_LEAF))
		return page_bad(walk, number, "it is of another kind");
	if (head->lower < PAGE_HEAD || head->lower % 2 != 0 || head->upper % 2 != 0 || head->lower > head->upper ||
	    head->upper > walk->page_bytes)
		return page_bad(walk, number, "what is free on it makes no sense");
	if ((head->lower - PAGE_HEAD) / 2 < (branch ? 2 : 1))
		return page_bad(walk, number, "there is too little on it");
	return check_tiles(walk, page, head, branch);
}

/* ---- Keys and values ------------------------------------------------------------------------------------------------ */

static int compare(const struct descent *descent, struct str a, struct str b)
{
	if (!descent->numbers)
		return str_compare(a, b);
	uint64_t x, y;
	memcpy(&x, a.at, sizeof(x));
	memcpy(&y, b.at, sizeof(y));
	return (x > y) - (x < y);
}

static bool is_key(const struct descent *descent, struct str key)
{
	return descent->numbers ? key.length == sizeof(uint64_t) : key.length > 0 && key.length <= ENGINE_KEY_BYTES;
}

/* Keys ascend, and are between what the page above says; `at` NULL: no bound. The first one of a branch has no meaning. */
static int check_keys(const struct descent *descent, const char *page, const struct page_head *head, bool branch,
                      struct str least, struct str below)
{
	const struct walk *walk = descent->walk;
	uint32_t count = (uint32_t)(head->lower - PAGE_HEAD) / 2;
	struct str last = least;
	for (uint32_t i = branch ? 1 : 0; i < count; i++) {
		struct str key = node_at(walk, page, i, branch).key;
		if (!is_key(descent, key))
			return page_bad(walk, head->number, "a key has an impossible length");
		bool first = i == (branch ? 1 : 0);
		int order = last.at ? compare(descent, last, key) : -1;
		if (order > 0 || (order == 0 && !(first && !branch)))
			return page_bad(walk, head->number, "keys are not in order");
		if (below.at && compare(descent, key, below) >= 0)
			return page_bad(walk, head->number, "a key belongs to another page");
		last = key;
	}
	return 0;
}

static int read_long(struct walk *walk, const struct node *node, struct str *value)
{
	struct page_head head;
	uint64_t number;
	memcpy(&number, node->value, sizeof(number));
	int code = take_page(walk, number, 1);
	code = code ? code : read_at(walk, number * walk->page_bytes, &head, sizeof(head));
	if (code)
		return code;
	uint32_t pages = (uint32_t)head.upper << 16 | head.lower;
	if (head.number != number || head.kind != KIND_LONG)
		return page_bad(walk, number, "it should be the first of a long value");
	if (pages == 0 || (uint64_t)pages * walk->page_bytes - PAGE_HEAD < node->size)
		return page_bad(walk, number, "a long value is longer than its pages");
	code = pages > 1 ? take_page(walk, number + 1, pages - 1) : 0;
	if (code)
		return code;
	if (walk->value_capacity < node->size) { /* no more than the file has, as take_page() has seen */
		free(walk->value);
		walk->value_capacity = node->size;
		walk->value = malloc(node->size);
		CHECK(walk->value != NULL);
	}
	*value = str_make(walk->value, node->size);
	return read_at(walk, number * walk->page_bytes + PAGE_HEAD, walk->value, node->size);
}

/* A value of the tree of free pages: how many, and their numbers, the highest first. */
static int take_free(struct walk *walk, struct str key, struct str value, uint64_t page)
{
	uint64_t number, count = 0, last = NO_PAGE;
	memcpy(&number, key.at, sizeof(number));
	if (value.length >= sizeof(count))
		memcpy(&count, value.at, sizeof(count));
	if (number > walk->meta.number || value.length < sizeof(count) || count > value.length / sizeof(count) - 1)
		return page_bad(walk, page, "a list of free pages makes no sense");
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id;
		memcpy(&id, value.at + (i + 1) * sizeof(id), sizeof(id));
		if (id < FIRST_PAGE || id > walk->meta.last_page || id >= last)
			return page_bad(walk, page, "a list of free pages is not in order");
		if (walk->free_count == walk->free_capacity) {
			walk->free_capacity = walk->free_capacity > 0 ? walk->free_capacity * 2 : 1024;
			walk->free_pages = realloc(walk->free_pages, walk->free_capacity * sizeof(*walk->free_pages));
			CHECK(walk->free_pages != NULL);
		}
		walk->free_pages[walk->free_count++] = last = id;
	}
	return 0;
}

static int check_leaf(struct descent *descent, const char *page, const struct page_head *head)
{
	struct walk *walk = descent->walk;
	uint32_t count = (uint32_t)(head->lower - PAGE_HEAD) / 2;
	int code = 0;
	for (uint32_t i = 0; i < count && code == 0; i++) {
		struct node node = node_at(walk, page, i, false);
		struct str value = str_make(node.value, node.size);
		if (node.flags & ~NODE_LONG)
			return page_bad(walk, head->number, "a node is of an unknown kind");
		if (node.flags & NODE_LONG)
			code = read_long(walk, &node, &value);
		if (code == 0 && descent->numbers)
			code = take_free(walk, node.key, value, head->number);
		else if (code == 0)
			code = walk->view->each(walk->view->context, node.key, value, walk->err);
		descent->entries++;
	}
	return code;
}

/* ---- Trees ---------------------------------------------------------------------------------------------------------- */

static int check_page(struct descent *descent, uint64_t number, uint32_t depth, struct str least, struct str below)
{
	struct walk *walk = descent->walk;
	struct page_head head = {.lower = PAGE_HEAD};
	bool branch = depth > 1;
	char *page = malloc(walk->page_bytes);
	CHECK(page != NULL);
	int code = take_page(walk, number, 1);
	code = code ? code : read_page(walk, number, branch, page, &head);
	code = code ? code : check_keys(descent, page, &head, branch, least, below);
	if (code == 0 && !branch)
		code = check_leaf(descent, page, &head);
	uint32_t count = (uint32_t)(head.lower - PAGE_HEAD) / 2;
	for (uint32_t i = 0; branch && code == 0 && i < count; i++) {
		struct node node = node_at(walk, page, i, true);
		struct str next = i + 1 < count ? node_at(walk, page, i + 1, true).key : below;
		code = check_page(descent, node.page, depth - 1, i > 0 ? node.key : least, next);
	}
	free(page);
	return code;
}

static int check_tree(struct walk *walk, const struct tree *tree, bool numbers)
{
	struct descent descent = {.walk = walk, .numbers = numbers};
	if (tree->flags != (numbers ? TREE_OF_NUMBERS : 0) || tree->depth > DEPTH_MOST ||
	    (tree->root == NO_PAGE) != (tree->depth == 0))
		return err_set(walk->err, ERR_CORRUPT, "the first pages describe a tree that cannot be");
	int code = tree->depth > 0 ? check_page(&descent, tree->root, tree->depth, (struct str){0}, (struct str){0}) : 0;
	if (code == 0 && descent.entries != tree->entries)
		code = err_set(walk->err, ERR_CORRUPT, "%" PRIu64 " entries are there, and there should be %" PRIu64,
		               descent.entries, tree->entries);
	return code;
}

/* ---- The first pages ------------------------------------------------------------------------------------------------ */

static int read_meta(struct walk *walk, uint64_t offset, struct meta *meta)
{
	struct page_head head;
	if (walk->file_bytes < offset + sizeof(head) + sizeof(*meta))
		return err_set(walk->err, ERR_CORRUPT,
		               "it has %" PRIu64 " bytes, which is not even its first pages: cut short, "
		               "or no store",
		               walk->file_bytes);
	int code = read_at(walk, offset, &head, sizeof(head));
	code = code ? code : read_at(walk, offset + sizeof(head), meta, sizeof(*meta));
	if (code)
		return code;
	if (head.kind != KIND_META || meta->magic != MAGIC)
		return err_set(walk->err, ERR_CORRUPT, "it is not a file of LMDB, or its first pages are damaged");
	if (meta->version != DATA_VERSION)
		return err_set(walk->err, ERR_VERSION, "it is a file of LMDB's format %u, and %d is what this program reads",
		               meta->version, DATA_VERSION);
	uint32_t size = meta->trees[0].pad;
	if (size < PAGE_LEAST || size > PAGE_MOST || (size & (size - 1)) != 0)
		return err_set(walk->err, ERR_CORRUPT, "its first pages say that a page has %u bytes", size);
	return 0;
}

/* Commit N writes the first page if it is even, the second one if it is odd: the other one is of N - 1. */
static int choose_meta(struct walk *walk)
{
	struct meta metas[2] = {0};
	int code = read_meta(walk, 0, &metas[0]);
	code = code ? code : read_meta(walk, metas[0].trees[0].pad, &metas[1]);
	if (code)
		return code;
	uint64_t a = metas[0].number, b = metas[1].number;
	bool fresh = a == 0 && b == 0;
	if (metas[0].trees[0].pad != metas[1].trees[0].pad ||
	    (!fresh && (a % 2 != 0 || b % 2 != 1 || (a + 1 != b && b + 1 != a))))
		return err_set(walk->err, ERR_CORRUPT, "its first pages contradict each other");
	walk->meta = metas[b > a];
	walk->older = metas[b <= a];
	walk->page_bytes = walk->meta.trees[0].pad;
	CHECK(walk->page_bytes >= PAGE_LEAST); /* read_meta() has seen to it */
	/* Pages at the end that became free before they were ever written are not in the file, but in a list, 8 bytes each. */
	uint64_t most = walk->file_bytes / walk->page_bytes + walk->file_bytes / sizeof(uint64_t);
	if (walk->meta.last_page < FIRST_PAGE - 1 || walk->meta.last_page > most)
		return err_set(walk->err, ERR_CORRUPT, "its first pages say that there are %" PRIu64 " pages",
		               walk->meta.last_page);
	return 0;
}

/* Looks the entry up that says in which commit it was written. Gives 0 where it is not there, or anything is strange: the
 * tree of the older commit is of no use but for this, and may have been overwritten in part. */
static uint64_t find_number(struct walk *walk, const struct tree *tree)
{
	struct str key = walk->view->number_key;
	struct page_head head;
	uint64_t number = tree->root, found = 0;
	char *page = malloc(walk->page_bytes);
	CHECK(page != NULL);
	for (uint32_t depth = tree->depth > DEPTH_MOST ? 0 : tree->depth; depth > 0; depth--) {
		if (number >= walk->file_bytes / walk->page_bytes || read_page(walk, number, depth > 1, page, &head))
			break;
		uint32_t count = (uint32_t)(head.lower - PAGE_HEAD) / 2, at = 0;
		while (at + 1 < count && str_compare(node_at(walk, page, at + 1, depth > 1).key, key) <= 0)
			at++;
		struct node node = node_at(walk, page, at, depth > 1);
		number = node.page;
		if (depth == 1 && str_equal(node.key, key) && node.flags == 0)
			found = walk->view->number_of(key, str_make(node.value, node.size));
	}
	free(page);
	return found;
}

/* There is no check sum on the first pages. What would make LMDB take the older commit for the last one, which hangs together
 * just as well, shows in what was stored by each. (A compacted copy begins to count anew, at 1.) */
static int check_numbers(struct walk *walk)
{
	struct err *err = walk->err;
	walk->err = NULL;
	uint64_t last = find_number(walk, &walk->meta.trees[1]), older = find_number(walk, &walk->older.trees[1]);
	walk->err = err;
	if (walk->meta.number > 1 && last != walk->meta.number)
		return err_set(err, ERR_CORRUPT, "its first pages speak of commit %" PRIu64 ", what is stored of %" PRIu64,
		               walk->meta.number, last);
	if (walk->older.number > 1 && older > last && older % 2 != last % 2)
		return err_set(err, ERR_CORRUPT, "its first pages speak of commit %" PRIu64 ", and %" PRIu64 " is there",
		               walk->meta.number, older);
	return 0;
}

static int check_all(struct walk *walk)
{
	int code = choose_meta(walk);
	if (code)
		return code;
	walk->seen = calloc(1, walk->meta.last_page / 8 + 1); /* not touched, not taken */
	if (!walk->seen)
		return err_set(walk->err, ERR_NO_MEMORY, "there is no memory to look at %" PRIu64 " pages",
		               walk->meta.last_page);
	code = check_tree(walk, &walk->meta.trees[1], false);
	code = code ? code : check_tree(walk, &walk->meta.trees[0], true);
	for (uint64_t i = 0; i < walk->free_count && code == 0; i++)
		if (!see(walk, walk->free_pages[i]))
			code = err_set(walk->err, ERR_CORRUPT, "page %" PRIu64 " is said to be free, and is used",
			               walk->free_pages[i]);
	code = code ? code : check_numbers(walk);
	for (uint64_t i = walk->file_bytes / walk->page_bytes; i <= walk->meta.last_page && code == 0; i++)
		if (see(walk, i))
			code = err_set(walk->err, ERR_CORRUPT, "page %" PRIu64 " is not there, and not free", i);
	return code;
}

int probe_file(const char *path, const struct probe_view *view, struct probe *probe, struct err *err)
{
	struct walk walk = {.view = view, .err = err};
	struct stat status = {0};
	*probe = (struct probe){.empty = true};
	walk.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (walk.fd < 0 && errno == ENOENT)
		return 0;
	int code = 0;
	if (walk.fd < 0 || fstat(walk.fd, &status))
		code = err_set(err, ERR_IO, "cannot read it: %s", strerror(errno));
	else if (!S_ISREG(status.st_mode))
		code = err_set(err, ERR_INVALID, "it is no file");
	walk.file_bytes = code == 0 ? (uint64_t)status.st_size : 0;
	if (code == 0 && walk.file_bytes > 0) {
		code = check_all(&walk);
		probe->empty = walk.meta.number == 0;
		probe->bytes = (walk.meta.last_page + 1) * walk.page_bytes;
	}
	if (walk.fd >= 0)
		close(walk.fd);
	free(walk.seen);
	free(walk.free_pages);
	free(walk.value);
	return code ? err_context(err, code, TEXT_PATH_FMT, TEXT_PATH(path)) : 0;
}
