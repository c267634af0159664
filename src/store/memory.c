/* The engine in memory: a tree of which a commit makes a new version, and which shares with the older ones all that is the
 * same.
 *
 *   version 7: root ─▶ a' ─▶ b'          A treap: ordered by key, a heap by a hash of the key, so its shape depends on
 *   version 6: root ─▶ a ─┬▶ b           the keys alone, and it is balanced as if by chance. A node that more than one
 *                         └▶ c ◀─ a'     version points to is copied before it is changed; each counts who points to it.
 *
 * A reading transaction holds a version, and asks nobody for anything after that. "Durable" is a list of versions: the
 * first is on the disk that is not there, the others would be lost by a crash, or not. */
#include "store/store_int.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdlib.h>

struct item {
	atomic_uint refs;
	uint32_t key_length;
	size_t value_length;
	char bytes[]; /* key, value */
};

struct node {
	atomic_uint refs;
	uint64_t priority;
	struct item *item;
	struct node *left;
	struct node *right;
};

struct version {
	struct node *root;
	uint64_t number;
	uint64_t bytes;
};

struct memory;

struct memory_txn {
	struct memory *memory;
	struct version version;
	bool writes;
	bool open;
};

struct memory {
	pthread_mutex_t lock;     /* over `versions` and what follows */
	struct version *versions; /* the durable one first, the current one last; LIMIT_STORE_UNSYNCED + 1 */
	uint32_t versions_count;
	bool lazy;
	int fail_next;
	struct memory_txn writer;
	struct memory_txn readers[LIMIT_STORE_READERS];
};

struct memory_cursor {
	struct node *root; /* of the transaction, which is open all the while */
	struct item *at;
};

/* ---- Items and nodes ------------------------------------------------------------------------------------------------ */

static struct str item_key(const struct item *item)
{
	return str_make(item->bytes, item->key_length);
}

static struct str item_value(const struct item *item)
{
	return str_make(item->bytes + item->key_length, item->value_length);
}

static uint64_t item_bytes(const struct item *item)
{
	return sizeof(struct node) + sizeof(*item) + item->key_length + item->value_length;
}

static struct item *item_new(struct str key, struct str value)
{
	struct item *item = malloc(sizeof(*item) + key.length + value.length);
	CHECK(item != NULL);
	atomic_init(&item->refs, 1);
	item->key_length = (uint32_t)key.length;
	item->value_length = value.length;
	memcpy(item->bytes, key.at, key.length);
	if (value.length > 0)
		memcpy(item->bytes + key.length, value.at, value.length);
	return item;
}

static void item_drop(struct item *item)
{
	if (atomic_fetch_sub_explicit(&item->refs, 1, memory_order_acq_rel) == 1)
		free(item);
}

static void node_keep(struct node *node)
{
	if (node)
		atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
}

static void node_drop(struct node *node)
{
	if (!node || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)
		return;
	node_drop(node->left);
	node_drop(node->right);
	item_drop(node->item);
	free(node);
}

/* Takes the caller's share of the node, gives one that nobody else points to. */
static struct node *node_own(struct node *node)
{
	if (atomic_load_explicit(&node->refs, memory_order_acquire) == 1)
		return node;
	struct node *own = malloc(sizeof(*own));
	CHECK(own != NULL);
	own->priority = node->priority;
	own->item = node->item;
	own->left = node->left;
	own->right = node->right;
	atomic_init(&own->refs, 1);
	atomic_fetch_add_explicit(&own->item->refs, 1, memory_order_relaxed);
	node_keep(own->left);
	node_keep(own->right);
	node_drop(node);
	return own;
}

static struct node *node_new(struct item *item)
{
	static const struct hash_key fixed = {0x7472656170206f66, 0x2063686f65707321};
	struct node *node = malloc(sizeof(*node));
	CHECK(node != NULL);
	*node = (struct node){.priority = hash_bytes(&fixed, item_key(item)), .item = item};
	atomic_init(&node->refs, 1);
	return node;
}

/* ---- The tree ------------------------------------------------------------------------------------------------------- */

static struct item *tree_find(const struct node *node, struct str key)
{
	while (node) {
		int order = str_compare(key, item_key(node->item));
		if (order == 0)
			return node->item;
		node = order < 0 ? node->left : node->right;
	}
	return NULL;
}

/* The first at the key, or after it. */
static struct item *tree_seek(const struct node *node, struct str key, bool after)
{
	struct item *best = NULL;
	while (node) {
		int order = str_compare(key, item_key(node->item));
		if (order < 0 || (order == 0 && !after)) {
			best = node->item;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return best;
}

static struct node *rotate_right(struct node *node)
{
	struct node *up = node->left;
	node->left = up->right;
	up->right = node;
	return up;
}

static struct node *rotate_left(struct node *node)
{
	struct node *up = node->right;
	node->right = up->left;
	up->left = node;
	return up;
}

/* Takes `node` and `item`; an item with the same key is dropped. As deep as the tree is: some tens for millions. */
static struct node *tree_put(struct node *node, struct item *item)
{
	if (!node)
		return node_new(item);
	node = node_own(node);
	int order = str_compare(item_key(item), item_key(node->item));
	if (order == 0) {
		item_drop(node->item);
		node->item = item;
	} else if (order < 0) {
		node->left = tree_put(node->left, item);
		if (node->left->priority > node->priority)
			return rotate_right(node);
	} else {
		node->right = tree_put(node->right, item);
		if (node->right->priority > node->priority)
			return rotate_left(node);
	}
	return node;
}

static struct node *tree_join(struct node *left, struct node *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->priority > right->priority) {
		left = node_own(left);
		left->right = tree_join(left->right, right);
		return left;
	}
	right = node_own(right);
	right->left = tree_join(left, right->left);
	return right;
}

/* The key is there. */
static struct node *tree_remove(struct node *node, struct str key)
{
	node = node_own(node);
	int order = str_compare(key, item_key(node->item));
	if (order < 0) {
		node->left = tree_remove(node->left, key);
	} else if (order > 0) {
		node->right = tree_remove(node->right, key);
	} else {
		struct node *joined = tree_join(node->left, node->right);
		item_drop(node->item);
		free(node);
		return joined;
	}
	return node;
}

/* ---- Versions ------------------------------------------------------------------------------------------------------- */

static void lock(struct memory *memory)
{
	CHECK(pthread_mutex_lock(&memory->lock) == 0);
}

static void unlock(struct memory *memory)
{
	CHECK(pthread_mutex_unlock(&memory->lock) == 0);
}

static struct version current(const struct memory *memory)
{
	return memory->versions[memory->versions_count - 1];
}

/* Forgets the first `count` versions: what comes after them is durable. */
static void forget(struct memory *memory, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		node_drop(memory->versions[i].root);
	memory->versions_count -= count;
	memmove(memory->versions, memory->versions + count, memory->versions_count * sizeof(*memory->versions));
}

static int memory_begin(struct memory *memory, struct memory_txn *txn, bool writes)
{
	CHECK(!txn->open);
	lock(memory);
	struct version version = current(memory);
	node_keep(version.root);
	unlock(memory);
	*txn = (struct memory_txn){.memory = memory, .version = version, .writes = writes, .open = true};
	return 0;
}

static int memory_begin_read(void *context, uint32_t slot, void **txn, struct err *err)
{
	(void)err;
	struct memory *memory = context;
	*txn = &memory->readers[slot];
	return memory_begin(memory, *txn, false);
}

static int memory_begin_write(void *context, void **txn, struct err *err)
{
	(void)err;
	struct memory *memory = context;
	*txn = &memory->writer;
	return memory_begin(memory, *txn, true);
}

static void memory_abort(void *context)
{
	struct memory_txn *txn = context;
	node_drop(txn->version.root);
	txn->open = false;
}

static int memory_commit(void *context, struct err *err)
{
	struct memory_txn *txn = context;
	struct memory *memory = txn->memory;
	lock(memory);
	int code = memory->fail_next;
	memory->fail_next = 0;
	if (code == 0) {
		if (memory->versions_count > LIMIT_STORE_UNSYNCED)
			forget(memory, 1);
		txn->version.number++;
		memory->versions[memory->versions_count++] = txn->version;
		txn->version.root = NULL;
		if (!memory->lazy)
			forget(memory, memory->versions_count - 1);
	}
	unlock(memory);
	memory_abort(txn);
	return code ? err_set(err, code, "the simulated disk failed") : 0;
}

static uint64_t memory_number(void *context)
{
	const struct memory_txn *txn = context;
	return txn->version.number + (txn->writes ? 1 : 0);
}

/* ---- Entries -------------------------------------------------------------------------------------------------------- */

static int memory_room(void *context, struct err *err)
{
	(void)context;
	(void)err;
	return 0;
}

static int memory_get(void *context, struct str key, struct str *value, struct err *err)
{
	(void)err;
	const struct memory_txn *txn = context;
	const struct item *item = tree_find(txn->version.root, key);
	if (!item)
		return ERR_NOT_FOUND;
	*value = item_value(item);
	return 0;
}

static int memory_put(void *context, struct str key, struct str value, struct err *err)
{
	(void)err;
	struct memory_txn *txn = context;
	CHECK(txn->writes && key.length > 0 && key.length <= ENGINE_KEY_BYTES);
	const struct item *old = tree_find(txn->version.root, key);
	struct item *item = item_new(key, value);
	txn->version.bytes += item_bytes(item) - (old ? item_bytes(old) : 0);
	txn->version.root = tree_put(txn->version.root, item);
	return 0;
}

static int memory_remove(void *context, struct str key, struct err *err)
{
	(void)err;
	struct memory_txn *txn = context;
	const struct item *old = tree_find(txn->version.root, key);
	CHECK(txn->writes);
	if (!old)
		return ERR_NOT_FOUND;
	txn->version.bytes -= item_bytes(old);
	txn->version.root = tree_remove(txn->version.root, key);
	return 0;
}

static int memory_cursor_open(void *context, void **out, struct err *err)
{
	(void)err;
	const struct memory_txn *txn = context;
	struct memory_cursor *cursor = malloc(sizeof(*cursor));
	CHECK(cursor != NULL);
	*cursor = (struct memory_cursor){.root = txn->version.root};
	*out = cursor;
	return 0;
}

static int give(struct memory_cursor *cursor, struct item *item, struct engine_entry *entry)
{
	if (!item)
		return 0;
	cursor->at = item;
	*entry = (struct engine_entry){item_key(item), item_value(item)};
	return 1;
}

static int memory_cursor_seek(void *context, struct str at_least, struct engine_entry *entry, struct err *err)
{
	(void)err;
	struct memory_cursor *cursor = context;
	return give(cursor, tree_seek(cursor->root, at_least, false), entry);
}

static int memory_cursor_next(void *context, struct engine_entry *entry, struct err *err)
{
	(void)err;
	struct memory_cursor *cursor = context;
	return give(cursor, tree_seek(cursor->root, item_key(cursor->at), true), entry);
}

static void memory_cursor_close(void *context)
{
	free(context);
}

/* ---- The engine ----------------------------------------------------------------------------------------------------- */

static int memory_usage(void *context, struct store_usage *usage, struct err *err)
{
	(void)err;
	struct memory *memory = context;
	lock(memory);
	usage->bytes_used = usage->bytes_file = current(memory).bytes;
	unlock(memory);
	return 0;
}

static void memory_close(void *context)
{
	struct memory *memory = context;
	forget(memory, memory->versions_count);
	CHECK(pthread_mutex_destroy(&memory->lock) == 0);
	free(memory->versions);
	free(memory);
}

void engine_open_memory(struct store_engine *engine)
{
	struct memory *memory = calloc(1, sizeof(*memory));
	CHECK(memory != NULL);
	memory->versions = calloc(LIMIT_STORE_UNSYNCED + 2, sizeof(*memory->versions));
	CHECK(memory->versions != NULL && pthread_mutex_init(&memory->lock, NULL) == 0);
	memory->versions_count = 1;
	*engine = (struct store_engine){
		.context = memory,
		.close = memory_close,
		.begin_read = memory_begin_read,
		.begin_write = memory_begin_write,
		.commit = memory_commit,
		.abort = memory_abort,
		.number = memory_number,
		.room = memory_room,
		.get = memory_get,
		.put = memory_put,
		.remove = memory_remove,
		.cursor_open = memory_cursor_open,
		.cursor_seek = memory_cursor_seek,
		.cursor_next = memory_cursor_next,
		.cursor_close = memory_cursor_close,
		.usage = memory_usage,
	};
}

/* ---- What the simulator does to it ---------------------------------------------------------------------------------- */

static struct memory *memory_of(struct store *store)
{
	CHECK(store->engine.close == memory_close);
	return store->engine.context;
}

void store_memory_fail_next(struct store *store, int code)
{
	CHECK(code < 0);
	memory_of(store)->fail_next = code;
}

void store_memory_set_lazy(struct store *store, bool lazy)
{
	memory_of(store)->lazy = lazy;
	if (!lazy)
		store_memory_sync(store);
}

void store_memory_sync(struct store *store)
{
	struct memory *memory = memory_of(store);
	lock(memory);
	forget(memory, memory->versions_count - 1);
	unlock(memory);
}

void store_memory_crash(struct store *store, uint64_t random)
{
	struct memory *memory = memory_of(store);
	CHECK(!memory->writer.open);
	for (uint32_t i = 0; i < LIMIT_STORE_READERS; i++)
		CHECK(!memory->readers[i].open);
	lock(memory);
	uint32_t left = 1 + (uint32_t)(random % memory->versions_count);
	for (uint32_t i = left; i < memory->versions_count; i++)
		node_drop(memory->versions[i].root);
	memory->versions_count = left;
	forget(memory, left - 1);
	memory->fail_next = 0;
	unlock(memory);
}

/* In the order of the keys; the catalogue, which is first, is passed over. */
bool store_memory_damage(struct store *store, uint64_t random)
{
	struct memory *memory = memory_of(store);
	struct version *version = &memory->versions[memory->versions_count - 1];
	static const char first[] = {1};
	uint64_t rows = 0;
	struct item *item;
	for (item = tree_seek(version->root, str_make(first, 1), false); item; rows++)
		item = tree_seek(version->root, item_key(item), true);
	if (rows == 0)
		return false;
	item = tree_seek(version->root, str_make(first, 1), false);
	for (uint64_t i = random % rows; i > 0; i--)
		item = tree_seek(version->root, item_key(item), true);
	struct item *damaged = item_new(item_key(item), item_value(item));
	size_t bit = (size_t)(random / rows) % (damaged->value_length * 8);
	unsigned char *byte = (unsigned char *)damaged->bytes + damaged->key_length + bit / 8;
	*byte = (unsigned char)(*byte ^ 1U << bit % 8);
	version->root = tree_put(version->root, damaged);
	return true;
}
