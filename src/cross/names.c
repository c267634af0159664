/* Names: what is asked of it, what is due, and what is said to whom. names.h says how it works. */
#include "cross/names_int.h"

#include "base/check.h"
#include "base/text.h"

#include <stdlib.h>

enum { STEPS_MOST = 100000, ITEM_MOST = 512 };

struct cross_names_options cross_names_options_default(void)
{
	return (struct cross_names_options){.wait_us = 3000000, .retry_least_us = 500000, .retry_most_us = 60000000};
}

/* ---- What is to be done again ------------------------------------------------------------------------------------------ */

static struct key active_key(enum cross_table table, struct str key)
{
	struct key with = {.length = key.length + 1};
	CHECK(with.length <= sizeof(with.bytes));
	with.bytes[0] = (char)table;
	memcpy(with.bytes + 1, key.at, key.length);
	return with;
}

struct active *active_find(const struct cross_names *names, enum cross_table table, struct str key)
{
	struct key with = active_key(table, key);
	return map_get(&names->actives, key_str(&with));
}

struct active *active_make(struct cross_names *names, enum cross_table table, struct str key)
{
	struct active *it = active_find(names, table, key);
	if (it)
		return it;
	it = calloc(1, sizeof(*it));
	CHECK(it != NULL);
	if (names->active_count == names->active_capacity) {
		names->active_capacity = names->active_capacity ? 2 * names->active_capacity : 16;
		names->active = realloc(names->active, names->active_capacity * sizeof(*names->active));
		CHECK(names->active != NULL);
	}
	it->table = (uint8_t)table;
	it->key = active_key(table, key);
	it->due_us = names->now.us;
	it->place = names->active_count;
	names->active[names->active_count++] = it;
	map_set(&names->actives, key_str(&it->key), it);
	return it;
}

static void answer_ticket(struct cross_names *names, struct active *it, struct cross_answer answer)
{
	if (it->ticket == 0)
		return;
	answer.ticket = it->ticket;
	it->ticket = 0;
	names->waiting--;
	names->host.answer(names->host.context, &answer);
}

void active_answer(struct cross_names *names, struct str key, const struct cross_answer *answer)
{
	struct active *it = active_find(names, CROSS_CLAIMS, key);
	if (it)
		answer_ticket(names, it, *answer);
}

void active_end(struct cross_names *names, enum cross_table table, struct str key)
{
	struct key with = active_key(table, key);
	struct active *it = map_remove(&names->actives, key_str(&with));
	if (!it)
		return;
	answer_ticket(names, it, (struct cross_answer){.code = ERR_UNAVAILABLE});
	names->active[it->place] = names->active[--names->active_count];
	names->active[it->place]->place = it->place;
	free(it);
}

void active_again(struct cross_names *names, struct active *it)
{
	it->wait_us = it->wait_us == 0 ? names->options.retry_least_us : 2 * it->wait_us;
	if (it->wait_us > names->options.retry_most_us)
		it->wait_us = names->options.retry_most_us;
	it->due_us = names->now.us + it->wait_us + names->host.draw(names->host.context) % (it->wait_us / 4 + 1);
	if (it->ticket && it->due_us > it->deadline_us)
		it->due_us = it->deadline_us;
}

uint64_t cross_names_due(const struct cross_names *names)
{
	uint64_t due_us = UINT64_MAX;
	for (uint32_t i = 0; i < names->active_count; i++) {
		if (names->active[i]->due_us < due_us)
			due_us = names->active[i]->due_us;
	}
	return due_us;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------------- */

static bool get(struct cross_names *names, enum cross_table table, struct str key, struct buf *row)
{
	return names->host.get(names->host.context, table, key, row) == 0;
}

#define ROW_FUNCTIONS(KIND, TABLE)                                                                                     \
	bool names_get_##KIND(struct cross_names *names, struct str key, struct KIND##_row *row)                           \
	{                                                                                                                  \
		struct buf bytes = {0};                                                                                        \
		bool there = get(names, TABLE, key, &bytes);                                                                   \
		bool sound = there && KIND##_row_parse(buf_str(&bytes), row);                                                  \
		names->counters.damaged += there && !sound;                                                                    \
		buf_free(&bytes);                                                                                              \
		return sound;                                                                                                  \
	}                                                                                                                  \
	void names_put_##KIND(struct cross_names *names, struct str key, const struct KIND##_row *row)                     \
	{                                                                                                                  \
		struct buf bytes = {0};                                                                                        \
		KIND##_row_put(row, &bytes);                                                                                   \
		names->host.put(names->host.context, TABLE, key, buf_str(&bytes));                                             \
		buf_free(&bytes);                                                                                              \
	}

ROW_FUNCTIONS(claim, CROSS_CLAIMS)
ROW_FUNCTIONS(name, CROSS_NAMES)
ROW_FUNCTIONS(rival, CROSS_RIVALS)

void names_remove(struct cross_names *names, enum cross_table table, struct str key)
{
	struct buf row = {0};
	if (get(names, table, key, &row))
		names->host.remove(names->host.context, table, key);
	buf_free(&row);
	active_end(names, table, key);
}

static bool collect(void *context, struct str key, struct str row)
{
	(void)row;
	put_number(context, key.length, 2);
	buf_put(context, key);
	return true;
}

void names_keys(struct cross_names *names, enum cross_table table, struct str prefix, struct buf *keys)
{
	if (names->host.scan(names->host.context, table, prefix, collect, keys))
		names->counters.damaged++;
}

bool names_keys_next(struct reader *reader, struct str *key)
{
	if (reader->left == 0)
		return false;
	*key = read_bytes(reader, read_16(reader));
	return !reader->failed;
}

uint64_t names_nonce(struct cross_names *names)
{
	uint64_t nonce = names->host.draw(names->host.context);
	return nonce && nonce != NONCE_OF_ASKED ? nonce : 1;
}

uint64_t names_stamp(struct cross_names *names)
{
	struct buf row = {0};
	uint64_t stamp = hlc_tick(&names->clock, names->now.wall_ms);
	put_number(&row, NAMES_ROW_VERSION, 1);
	put_number(&row, stamp, 8);
	names->host.put(names->host.context, CROSS_META, STR("clock"), buf_str(&row));
	buf_free(&row);
	return stamp;
}

/* ---- Messages ------------------------------------------------------------------------------------------------------------ */

static void flush(struct cross_names *names)
{
	if (names->out.length == 0)
		return;
	if (names->out_to == names->options.self) {
		put_number(&names->self, names->out.length, 4);
		buf_put(&names->self, buf_str(&names->out));
	} else {
		names->counters.messages_sent++;
		names->host.send(names->host.context, names->out_to, buf_str(&names->out));
	}
	buf_clear(&names->out);
}

static struct buf *message_to(struct cross_names *names, const struct container *it, site_id to, enum message_kind kind)
{
	struct message message = {(uint8_t)kind, it->id, it->list.term};
	const struct message *open = &names->out_message;
	if (names->out.length > 0 &&
	    (names->out_to != to || open->kind != kind || open->term != message.term ||
	     !names_same(open->container, message.container) || names->out.length + ITEM_MOST > LIMIT_CROSS_MESSAGE_BYTES))
		flush(names);
	if (names->out.length == 0) {
		names->out_to = to;
		names->out_message = message;
		names_message_begin(&names->out, &message);
	}
	return &names->out;
}

void names_tell_prime(struct cross_names *names, const struct container *it, const struct claim_item *item)
{
	claim_item_put(message_to(names, it, it->list.sites[0].site, MESSAGE_CLAIMS), item);
}

void names_tell_verdict(struct cross_names *names, const struct container *it, site_id to,
                        const struct verdict_item *item)
{
	verdict_item_put(message_to(names, it, to, MESSAGE_VERDICTS), item);
}

void names_tell(struct cross_names *names, const struct container *it, site_id to, enum message_kind kind)
{
	flush(names);
	struct buf *out = message_to(names, it, to, kind);
	if (kind == MESSAGE_LIST)
		container_put(&it->list, out);
	flush(names);
}

static void take_claims(struct cross_names *names, struct container *it, site_id from, const struct message *message,
                        struct reader *rest)
{
	struct claim_item item;
	if (!container_is_prime(names, it))
		return;
	while (rest->left > 0) {
		if (!claim_item_read(rest, message, &item)) {
			names->counters.messages_dropped++;
			return;
		}
		prime_claim(names, it, from, &item);
	}
}

static void take_verdicts(struct cross_names *names, struct container *it, site_id from, const struct message *message,
                          struct reader *rest)
{
	struct verdict_item item;
	if (it->list.sites[0].site != from)
		return;
	while (rest->left > 0) {
		if (!verdict_item_read(rest, message, &item)) {
			names->counters.messages_dropped++;
			return;
		}
		claim_verdict(names, it, &item);
	}
}

static void take_list(struct cross_names *names, struct container *it, site_id from, const struct message *message,
                      struct reader *rest)
{
	struct cross_container list = {.term = message->term};
	if (container_read(rest, &list) && rest->left == 0)
		container_told(names, it, from, &list);
	else
		names->counters.messages_dropped++;
}

static void take(struct cross_names *names, site_id from, struct str bytes)
{
	struct message message;
	struct reader rest;
	if (names_message_open(bytes, &message, &rest)) {
		names->counters.messages_dropped++;
		return;
	}
	struct container *it = container_of(names, message.container);
	if (!it)
		return;
	if (message.kind == MESSAGE_LIST) {
		take_list(names, it, from, &message, &rest);
	} else if (message.term != it->list.term) {
		names_tell(names, it, from, MESSAGE_LIST); /* whoever has the later one tells it */
	} else if (container_index(it, from) == it->list.count ||
	           container_index(it, names->options.self) == it->list.count) {
		names->counters.messages_dropped++;
	} else if (message.kind == MESSAGE_CLAIMS) {
		take_claims(names, it, from, &message, &rest);
	} else if (message.kind == MESSAGE_VERDICTS) {
		take_verdicts(names, it, from, &message, &rest);
	} else if (message.kind == MESSAGE_READY) {
		container_ready(names, it, from);
	}
}

/* What this site has said to itself is heard; then all is sent. */
static void finish(struct cross_names *names)
{
	flush(names);
	for (uint32_t steps = 0; names->self.length > 0; steps++) {
		struct buf heard = names->self;
		names->self = (struct buf){0};
		for (struct reader reader = reader_of(buf_str(&heard)); reader.left > 0;)
			take(names, names->options.self, read_bytes(&reader, read_32(&reader)));
		buf_free(&heard);
		flush(names);
		CHECK(steps < STEPS_MOST);
	}
}

void cross_names_receive(struct cross_names *names, site_id from, struct str message, struct replica_now now)
{
	names->now = now;
	if (from != names->options.self)
		take(names, from, message);
	finish(names);
}

void cross_names_tick(struct cross_names *names, struct replica_now now)
{
	names->now = now;
	struct buf due = {0};
	for (uint32_t i = 0; i < names->active_count; i++) {
		if (names->active[i]->due_us <= now.us) {
			put_number(&due, names->active[i]->key.length, 2);
			buf_put(&due, key_str(&names->active[i]->key));
		}
	}
	struct str key;
	for (struct reader reader = reader_of(buf_str(&due)); names_keys_next(&reader, &key);) {
		struct active *it = map_get(&names->actives, key);
		if (!it)
			continue;
		switch ((enum cross_table)it->table) {
		case CROSS_CONTAINERS: container_due(names, it); break;
		case CROSS_CLAIMS: claim_due(names, it); break;
		case CROSS_NAMES: prime_name_due(names, it); break;
		case CROSS_RIVALS: prime_rival_due(names, it); break;
		case CROSS_META:
		case CROSS_CHILDREN:
		case CROSS_TABLES: UNREACHABLE("nothing is due of these");
		}
	}
	buf_free(&due);
	finish(names);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

static bool load_container(void *context, struct str key, struct str row)
{
	struct cross_names *names = context;
	names->counters.damaged += !container_load(names, key, row);
	return true;
}

static int load_clock(struct cross_names *names, struct err *err)
{
	struct buf row = {0};
	int code = names->host.get(names->host.context, CROSS_META, STR("clock"), &row);
	struct reader reader = reader_of(buf_str(&row));
	uint8_t version = read_8(&reader);
	uint64_t clock = read_64(&reader);
	bool sound = version == NAMES_ROW_VERSION && !reader.failed && reader.left == 0 && clock < UINT64_MAX >> 1;
	buf_free(&row);
	if (code == ERR_NOT_FOUND)
		return 0;
	if (code)
		return err_set(err, code, "the clock of names cannot be read");
	if (!sound)
		return err_set(err, ERR_CORRUPT, "the clock of names makes no sense");
	names->clock.last = clock;
	return 0;
}

int cross_names_new(struct cross_names **out, const struct cross_names_options *options,
                    const struct cross_names_host *host, struct replica_now now, struct err *err)
{
	struct cross_names *names = calloc(1, sizeof(*names));
	CHECK(names != NULL);
	names->options = *options;
	names->host = *host;
	names->now = now;
	map_init(&names->containers, options->hash_key);
	map_init(&names->actives, options->hash_key);
	int code = load_clock(names, err);
	if (code == 0)
		code = host->scan(host->context, CROSS_CONTAINERS, STR(""), load_container, names);
	if (code) {
		cross_names_free(names);
		return err && err->code ? code : err_set(err, code, "the containers cannot be read");
	}
	claims_start(names);
	prime_start(names);
	finish(names);
	*out = names;
	return 0;
}

void cross_names_free(struct cross_names *names)
{
	struct str key;
	void *value;
	for (size_t cursor = 0; map_next(&names->containers, &cursor, &key, &value);)
		free(value);
	for (uint32_t i = 0; i < names->active_count; i++)
		free(names->active[i]);
	map_free(&names->containers);
	map_free(&names->actives);
	free(names->active);
	buf_free(&names->out);
	buf_free(&names->self);
	free(names);
}

void cross_names_set(struct cross_names *names, struct replica_id container, const struct cross_container *list,
                     struct replica_now now)
{
	names->now = now;
	CHECK(list->count > 0 && list->count <= LIMIT_REPLICA_MEMBERS);
	container_set(names, container, list);
	finish(names);
}

void cross_names_forget(struct cross_names *names, struct replica_id container, struct replica_now now)
{
	names->now = now;
	struct container *it = container_of(names, container);
	if (!it)
		return;
	claims_drop(names, container);
	prime_drop(names, container);
	names_remove(names, CROSS_CONTAINERS, names_id_str(&container));
	map_remove(&names->containers, names_id_str(&container));
	free(it);
	finish(names);
}

bool cross_names_may_leave(struct cross_names *names, struct replica_id container, struct replica_now now)
{
	names->now = now;
	struct container *it = container_of(names, container);
	if (!it || container_index(it, names->options.self) == it->list.count)
		return true;
	bool handed = !container_is_prime(names, it) || container_hands_over(names, it);
	finish(names);
	return handed && !claims_any(names, it);
}

void cross_names_site_removed(struct cross_names *names, site_id site, struct replica_now now)
{
	names->now = now;
	prime_site_removed(names, site);
	finish(names);
}

/* ---- Asked --------------------------------------------------------------------------------------------------------------- */

static int check_claim(struct cross_names *names, const struct cross_claim *claim, struct err *err)
{
	const struct container *it = container_of(names, claim->container);
	if (!it || container_index(it, names->options.self) == it->list.count)
		return err_set(err, ERR_NOT_FOUND, "the container is not at this site");
	if (claim->name.length == 0)
		return err_set(err, ERR_INVALID, "a child of a container needs a name");
	if (claim->name.length > LIMIT_REPLICA_NAME_BYTES || claim->type.length > LIMIT_REPLICA_NAME_BYTES)
		return err_set(err, ERR_LIMIT, "the name " TEXT_NAME_FMT " has more than %d bytes", TEXT_NAME(claim->name),
		               LIMIT_REPLICA_NAME_BYTES);
	return 0;
}

int cross_names_claim(struct cross_names *names, const struct cross_claim *claim, struct str instead_of,
                      uint64_t ticket, struct replica_now now, struct err *err)
{
	names->now = now;
	CHECK(ticket != 0);
	int code = check_claim(names, claim, err);
	if (code == 0 && instead_of.length > LIMIT_REPLICA_NAME_BYTES)
		code = err_set(err, ERR_LIMIT, "the name " TEXT_NAME_FMT " has more than %d bytes", TEXT_NAME(instead_of),
		               LIMIT_REPLICA_NAME_BYTES);
	if (code == 0 && names->waiting >= LIMIT_CROSS_WAITING)
		code = err_set(err, ERR_LIMIT, "%d names are being asked for at this site: try again", LIMIT_CROSS_WAITING);
	if (code == 0)
		code = claim_begin(names, claim, instead_of, ticket, err);
	finish(names);
	return code;
}

int cross_names_adopt(struct cross_names *names, const struct cross_claim *claim, struct replica_now now,
                      struct err *err)
{
	names->now = now;
	int code = check_claim(names, claim, err);
	if (code == 0)
		claim_adopt(names, claim);
	finish(names);
	return code;
}

static bool is_sane(const struct cross_claim *claim)
{
	return claim->name.length > 0 && claim->name.length <= LIMIT_REPLICA_NAME_BYTES &&
	       claim->type.length <= LIMIT_REPLICA_NAME_BYTES;
}

void cross_names_kept(struct cross_names *names, const struct cross_claim *claim, struct replica_now now)
{
	names->now = now;
	if (is_sane(claim))
		claim_kept(names, claim);
	finish(names);
}

void cross_names_release(struct cross_names *names, const struct cross_claim *claim, struct replica_now now)
{
	names->now = now;
	if (is_sane(claim))
		claim_release(names, claim);
	finish(names);
}

/* ---- To look at ----------------------------------------------------------------------------------------------------------- */

struct looking {
	struct cross_names *names;
	bool (*each)(void *context, const struct cross_claim_view *view);
	void *context;
};

static bool look_at_claim(void *context, struct str key, struct str bytes)
{
	struct looking *looking = context;
	struct cross_claim_view view = {0};
	struct claim_row row;
	if (!key_parse(key, true, &view.claim) || !claim_row_parse(bytes, &row)) {
		looking->names->counters.damaged++;
		return true;
	}
	view.state = (enum cross_claim_state)row.state;
	view.unchecked = row.unchecked;
	view.settled = row.nonce != 0 || row.state == CROSS_LOST;
	view.stamp = row.stamp;
	view.holder = row.holder;
	view.holder_site = row.holder_site;
	return looking->each(looking->context, &view);
}

void cross_names_each(struct cross_names *names, const struct replica_id *container,
                      bool (*each)(void *context, const struct cross_claim_view *view), void *context)
{
	struct looking looking = {names, each, context};
	struct str prefix = container ? names_id_str(container) : STR("");
	if (names->host.scan(names->host.context, CROSS_CLAIMS, prefix, look_at_claim, &looking))
		names->counters.damaged++;
}

bool cross_names_has(struct cross_names *names, const struct cross_claim *claim)
{
	struct claim_row row;
	if (!is_sane(claim))
		return false;
	struct key key = key_of_claim(claim);
	return names_get_claim(names, key_str(&key), &row);
}

int cross_names_entry(struct cross_names *names, struct replica_id container, struct str type, struct str name,
                      struct cross_entry_view *view)
{
	struct cross_claim claim = {.container = container, .type = type, .name = name};
	struct name_row row;
	if (!is_sane(&claim))
		return ERR_NOT_FOUND;
	struct key key = key_of_name(&claim);
	if (!names_get_name(names, key_str(&key), &row))
		return ERR_NOT_FOUND;
	*view = (struct cross_entry_view){row.child, row.site, row.kept};
	return 0;
}

struct cross_names_counters cross_names_counters(const struct cross_names *names)
{
	struct cross_names_counters counters = names->counters;
	counters.active = names->active_count;
	return counters;
}
