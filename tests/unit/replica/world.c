#include "world.h"

#include "base/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- Rows ------------------------------------------------------------------------------------------------------------- */

static uint32_t row_place(const struct world_table *table, struct str key, bool *there)
{
	uint32_t low = 0, high = table->count;
	*there = false;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int order = str_compare(buf_str(&table->rows[middle].key), key);
		*there |= order == 0;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int world_get(void *context, enum replica_table table, struct str key, struct buf *row)
{
	struct world_site *site = context;
	bool there;
	uint32_t at = row_place(&site->tables[table], key, &there);
	site->reads++;
	if (!there)
		return ERR_NOT_FOUND;
	buf_put(row, buf_str(&site->tables[table].rows[at].row));
	return 0;
}

void world_put(void *context, enum replica_table number, struct str key, struct str row)
{
	struct world_site *site = context;
	struct world_table *table = &site->tables[number];
	bool there;
	uint32_t at = row_place(table, key, &there);
	CHECK(key.length > 0 && key.length <= LIMIT_STORE_KEY_BYTES);
	site->puts++;
	if (!there) {
		table->rows = replica_grow(table->rows, &table->capacity, table->count + 1, sizeof(*table->rows));
		memmove(table->rows + at + 1, table->rows + at, (table->count - at) * sizeof(*table->rows));
		table->rows[at] = (struct world_row){0};
		buf_put(&table->rows[at].key, key);
		table->count++;
	}
	buf_clear(&table->rows[at].row);
	buf_put(&table->rows[at].row, row);
}

void world_remove(void *context, enum replica_table number, struct str key)
{
	struct world_site *site = context;
	struct world_table *table = &site->tables[number];
	bool there;
	uint32_t at = row_place(table, key, &there);
	if (!there)
		return;
	buf_free(&table->rows[at].key);
	buf_free(&table->rows[at].row);
	memmove(table->rows + at, table->rows + at + 1, (table->count - at - 1) * sizeof(*table->rows));
	table->count--;
}

int world_scan(void *context, enum replica_table number, struct str prefix, struct str from,
               bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	struct world_site *site = context;
	struct world_table *table = &site->tables[number];
	bool there;
	uint32_t at = row_place(table, str_compare(from, prefix) > 0 ? from : prefix, &there);
	for (; at < table->count; at++) {
		struct str key = buf_str(&table->rows[at].key);
		site->reads++;
		if (key.length < prefix.length || memcmp(key.at, prefix.at, prefix.length) != 0)
			break;
		if (!each(each_context, key, buf_str(&table->rows[at].row)))
			break;
	}
	return 0;
}

uint32_t world_rows(const struct world *world, uint32_t site, enum replica_table table)
{
	return world->sites[site].tables[table].count;
}

/* ---- What a host does ------------------------------------------------------------------------------------------------------ */

static uint64_t draw(struct world *world)
{
	world->random = world->random * 6364136223846793005u + 1442695040888963407u;
	return world->random >> 33;
}

static uint64_t host_random(void *context)
{
	struct world_site *site = context;
	return draw(site->world);
}

static uint32_t site_number(site_id id)
{
	return (uint32_t)(id & 0xff) - 1;
}

static void push_message(struct world *world, site_id from, site_id to, struct str bytes)
{
	struct world_message message = {.from = from, .to = to, .at_us = world->now.us + world->latency_us};
	if (world->shuffle)
		message.at_us += draw(world) % (world->latency_us * 20 + 1);
	buf_put(&message.bytes, bytes);
	world->messages =
		replica_grow(world->messages, &world->messages_capacity, world->messages_count + 1, sizeof(message));
	world->messages[world->messages_count++] = message;
}

static void host_send(void *context, site_id to, struct str message)
{
	struct world_site *site = context;
	struct world *world = site->world;
	CHECK(message.length <= LIMIT_REPLICA_MESSAGE_BYTES);
	world->sent++;
	if (draw(world) % 100 >= world->lose_percent)
		push_message(world, site->id, to, message);
	if (draw(world) % 100 < world->double_percent)
		push_message(world, site->id, to, message);
}

static void copy_text(char *out, size_t room, struct str text)
{
	snprintf(out, room, "%.*s", STR_FMT(text));
}

static void host_execute(void *context, const struct replica_task *task)
{
	struct world_site *site = context;
	struct world_task copy = {.number = task->number, .kind = task->kind, .op = task->op, .first = task->first};
	if (task->kind != REPLICA_READ_STATE && task->kind != REPLICA_READ_COPY && task->kind != REPLICA_LEAVE)
		copy_text(copy.text, sizeof(copy.text), task->request->head);
	copy_text(copy.local_id, sizeof(copy.local_id), task->local_id);
	copy_text(site->secret, sizeof(site->secret), task->request->secret);
	site->tasks = replica_grow(site->tasks, &site->tasks_capacity, site->tasks_count + 1, sizeof(copy));
	site->tasks[site->tasks_count++] = copy;
}

static void host_answer(void *context, const struct replica_answer *answer)
{
	struct world_site *site = context;
	CHECK(answer->ticket > 0 && answer->ticket < WORLD_ANSWERS);
	struct world_answer *slot = &site->world->answers[answer->ticket];
	CHECK(!slot->there); /* once */
	slot->there = true;
	slot->answer = *answer;
	copy_text(slot->text, sizeof(slot->text), answer->text);
}

static void host_fetch(void *context, struct str blob, uint64_t bytes, site_id from)
{
	struct world_site *site = context;
	(void)bytes;
	site->fetches++;
	memcpy(site->fetched.sha, blob.at, blob.length);
	site->fetched.from = from;
}

static void host_drop(void *context, struct str blob)
{
	struct world_site *site = context;
	CHECK(blob.length == 32);
	site->drops++;
}

static void host_event(void *context, const struct replica_event *event)
{
	struct world_site *site = context;
	(void)event;
	site->events++;
}

static bool host_reachable(void *context, site_id other)
{
	struct world_site *site = context;
	return !site->world->sites[site_number(other)].unreachable;
}

/* ---- The application ----------------------------------------------------------------------------------------------------------- */

static int64_t number_in(const char *text)
{
	const char *space = strchr(text, ' ');
	return space ? strtoll(space, NULL, 10) : 0;
}

/* What a user said is of the whole, a part that was read is a part. */
static int64_t part_in(const struct world_site *site, const char *text)
{
	bool divides = site->world->span == REPLICA_DIVIDED && strchr(text, '#');
	return number_in(text) * (divides ? site_number(site->id) + 1 : 1);
}

static struct world_item *item_of(struct world_site *site, const char *local_id)
{
	uint32_t at = (uint32_t)strtoul(local_id, NULL, 10);
	return at > 0 && at <= site->items_count && site->items[at - 1].there ? &site->items[at - 1] : NULL;
}

/* 2xx, or the status of a refusal. */
static int apply(struct world_site *site, const struct world_task *task, char *local_id)
{
	struct world_item *item = item_of(site, task->local_id);
	bool creates = strncmp(task->text, "create", 6) == 0;
	const char *name = strchr(task->text, '@');
	for (uint32_t i = 0; i < site->items_count && creates && name && task->kind == REPLICA_RUN; i++)
		if (site->items[i].there && site->items[i].name == name[1])
			return 409;
	if ((creates && task->kind == REPLICA_RUN) || task->kind == REPLICA_RUN_ANEW) {
		CHECK(site->items_count < WORLD_ITEMS);
		item = &site->items[site->items_count++];
		*item = (struct world_item){.there = true, .value = part_in(site, task->text), .mark = '-', .changes = 1};
		item->name = name ? name[1] : '\0';
		if (strchr(task->text, '/'))
			item->mark = strchr(task->text, '/')[1];
		memcpy(item->made, task->text, sizeof(item->made));
		snprintf(local_id, 32, "%u", site->items_count);
		return 201;
	}
	if (!item)
		return 404;
	item->changes++;
	if (creates || strncmp(task->text, "set", 3) == 0) {
		item->value = part_in(site, task->text);
		const char *mark = strchr(task->text, '/');
		item->mark = mark ? mark[1] : '-';
	} else if (strncmp(task->text, "add", 3) == 0) {
		item->value += part_in(site, task->text);
	} else if (strncmp(task->text, "let", 3) == 0) {
		item->value = part_in(site, task->text);
	} else if (strncmp(task->text, "times", 5) == 0) {
		item->value = item->value * number_in(task->text) % 1000003;
	} else if (strncmp(task->text, "mark", 4) == 0) {
		item->mark = task->text[5];
	} else if (strncmp(task->text, "file", 4) == 0) {
		item->file = task->text[5];
	} else if (strncmp(task->text, "delete", 6) == 0) {
		item->there = false;
		return 204;
	}
	return 200;
}

static bool did_happen(const struct world_site *site, const char *text)
{
	for (uint32_t i = 0; i < site->happened_count; i++)
		if (strcmp(site->happened[i], text) == 0)
			return true;
	return false;
}

static void read_state(struct world_site *site, const struct world_task *task, struct replica_outcome *outcome,
                       char *text)
{
	const struct world_item *item = item_of(site, task->local_id);
	if (!item || site->no_state) {
		outcome->kind = REPLICA_REFUSED;
		return;
	}
	snprintf(text, 64, "set %lld/%c", (long long)item->value, item->mark);
	outcome->state.head = str_of(text);
	outcome->state_class = world_class("set");
	if (!item->file)
		return;
	/* Until the outcome was told. */
	static char file[64], sha[REPLICA_BLOB_BYTES];
	static struct replica_part part;
	snprintf(file, sizeof(file), "file %c", item->file);
	memset(sha, item->file, sizeof(sha));
	part = (struct replica_part){
		.request = {.head = str_of(file), .blob = str_make(sha, sizeof(sha)), .blob_bytes = 1 << 20},
		.class = world_class("file")};
	outcome->parts = &part;
	outcome->parts_count = 1;
}

/* As a host does: it looks first, and needs the blob only where there is something to set. */
static bool lacks_file(struct world_site *site, const struct world_task *task)
{
	const struct world_item *item = item_of(site, task->local_id);
	return strncmp(task->text, "file", 4) == 0 && item && item->file != task->text[5] &&
	       site->has_blob != task->text[5];
}

/* As a create that makes it elsewhere. */
static void read_copy(struct world_site *site, const struct world_task *task, struct replica_outcome *outcome,
                      char *text)
{
	const struct world_item *item = item_of(site, task->local_id);
	if (!item || site->no_state) {
		outcome->kind = REPLICA_REFUSED;
		return;
	}
	char name[4] = "";
	if (item->name)
		snprintf(name, sizeof(name), " @%c", item->name);
	snprintf(text, 64, "create %lld%s/%c", (long long)item->value, name, item->mark);
	outcome->state.head = str_of(text);
	outcome->state_class = (struct replica_class){.name = STR_INIT("copy")};
}

static void run_task(struct world_site *site, struct world_task task)
{
	char local_id[32] = "", text[64] = "";
	struct replica_outcome outcome = {.kind = REPLICA_ACCEPTED, .answer = STR("fine")};
	bool creates = strncmp(task.text, "create", 6) == 0, anew = task.kind == REPLICA_INQUIRE_ANEW;
	site->runs++;
	if (site->mode == SERVICE_DOWN || (site->mode == SERVICE_MAKES_NOTHING && creates) || lacks_file(site, &task)) {
		outcome.kind = REPLICA_FAILED;
	} else if (task.kind == REPLICA_READ_STATE) {
		read_state(site, &task, &outcome, text);
	} else if (task.kind == REPLICA_READ_COPY) {
		read_copy(site, &task, &outcome, text);
	} else if (task.kind == REPLICA_INQUIRE || task.kind == REPLICA_INQUIRE_ANEW) {
		outcome.kind = site->inquiry_blind           ? REPLICA_UNKNOWN
		               : did_happen(site, task.text) ? REPLICA_ACCEPTED
		                                             : REPLICA_REFUSED;
		for (uint32_t i = 0; i < site->items_count && outcome.kind == REPLICA_ACCEPTED && (creates || anew); i++)
			if (strcmp(site->items[i].made, task.text) == 0 && site->items[i].there)
				snprintf(local_id, sizeof(local_id), "%u", i + 1);
	} else if (site->mode == SERVICE_REFUSE || (site->mode == SERVICE_FULL && creates)) {
		outcome.kind = REPLICA_REFUSED;
		outcome.status = 422;
		outcome.answer = STR("no");
	} else if (site->mode == SERVICE_CREDENTIAL) {
		outcome.kind = REPLICA_CREDENTIAL;
		outcome.status = 401;
	} else if (site->mode == SERVICE_LOSES_REQUESTS) {
		outcome.kind = REPLICA_UNKNOWN;
	} else if (task.kind == REPLICA_LEAVE) {
		struct world_item *item = item_of(site, task.local_id);
		outcome.status = item ? 204 : 404;
		outcome.kind = item ? REPLICA_ACCEPTED : REPLICA_REFUSED;
		if (item)
			item->there = false;
	} else {
		outcome.status = apply(site, &task, local_id);
		if (outcome.status >= 400)
			outcome.kind = REPLICA_REFUSED;
		else if (site->happened_count < WORLD_ANSWERS)
			memcpy(site->happened[site->happened_count++], task.text, sizeof(task.text));
		if (site->mode == SERVICE_LOSES_ANSWERS) {
			outcome = (struct replica_outcome){.kind = REPLICA_UNKNOWN};
			local_id[0] = '\0';
		}
	}
	outcome.local_id = str_of(local_id);
	if (getenv("CHEOPS_TRACE"))
		print_message("%llu site %u: replicant %u op %llx.%x kind %d `%s` on %s: outcome %d status %d local id %s\n",
		              (unsigned long long)site->world->now.us, site_number(site->id), task.op.replicant.bytes[15],
		              (unsigned long long)task.op.site, task.op.number, task.kind, task.text, task.local_id,
		              outcome.kind, outcome.status, local_id);
	if (site->replica)
		replica_executed(site->replica, task.number, &outcome, site->world->now);
}

static bool pop_task(struct world_site *site)
{
	if (site->tasks_count == 0)
		return false;
	struct world_task task = site->tasks[0];
	memmove(site->tasks, site->tasks + 1, (site->tasks_count - 1) * sizeof(task));
	site->tasks_count--;
	run_task(site, task);
	return true;
}

void world_run_task(struct world *world, uint32_t site)
{
	assert_true(pop_task(&world->sites[site]));
}

/* ---- Time ------------------------------------------------------------------------------------------------------------------------ */

static bool run_tasks(struct world *world)
{
	bool any = false;
	for (uint32_t i = 0; i < world->sites_count; i++)
		while (!world->sites[i].hold_tasks && pop_task(&world->sites[i]))
			any = true;
	return any;
}

/* The earliest message, if its time has come. */
static bool deliver(struct world *world)
{
	uint32_t first = UINT32_MAX;
	for (uint32_t i = 0; i < world->messages_count; i++)
		if (world->messages[i].at_us <= world->now.us &&
		    (first == UINT32_MAX || world->messages[i].at_us < world->messages[first].at_us))
			first = i;
	if (first == UINT32_MAX)
		return false;
	struct world_message message = world->messages[first];
	memmove(world->messages + first, world->messages + first + 1,
	        (world->messages_count - first - 1) * sizeof(message));
	world->messages_count--;
	uint32_t from = site_number(message.from), to = site_number(message.to);
	CHECK(to < world->sites_count);
	if (!world->cut[from][to] && world->sites[to].replica)
		replica_receive(world->sites[to].replica, message.from, buf_str(&message.bytes), world->now);
	buf_free(&message.bytes);
	return true;
}

static uint64_t next_due(const struct world *world)
{
	uint64_t due = UINT64_MAX;
	for (uint32_t i = 0; i < world->messages_count; i++)
		due = world->messages[i].at_us < due ? world->messages[i].at_us : due;
	for (uint32_t i = 0; i < world->sites_count; i++) {
		uint64_t its = world->sites[i].replica ? replica_due(world->sites[i].replica) : UINT64_MAX;
		due = its < due ? its : due;
	}
	return due;
}

static void advance(struct world *world, uint64_t to_us)
{
	world->now.wall_ms += to_us / 1000 - world->now.us / 1000;
	world->now.us = to_us;
}

void world_go(struct world *world, uint64_t us)
{
	uint64_t end = world->now.us + us;
	for (uint32_t turns = 0;; turns++) {
		assert_true(turns < 2000000); /* it goes round in circles */
		if (run_tasks(world) || deliver(world))
			continue;
		uint64_t due = next_due(world);
		if (due > end)
			break;
		if (due > world->now.us)
			advance(world, due);
		for (uint32_t i = 0; i < world->sites_count; i++) {
			struct replica *replica = world->sites[i].replica;
			if (!replica || replica_due(replica) > world->now.us)
				continue;
			world->sites[i].ticks++;
			replica_tick(replica, world->now);
		}
	}
	advance(world, end);
}

/* ---- Sites ----------------------------------------------------------------------------------------------------------------------- */

void world_start(struct world *world, uint32_t number)
{
	struct world_site *site = &world->sites[number];
	struct err err = {0};
	struct replica_host host = {.context = site,
	                            .get = world_get,
	                            .put = world_put,
	                            .remove = world_remove,
	                            .scan = world_scan,
	                            .send = host_send,
	                            .execute = host_execute,
	                            .answer = host_answer,
	                            .fetch = host_fetch,
	                            .drop = host_drop,
	                            .event = host_event,
	                            .reachable = host_reachable,
	                            .random = host_random};
	struct replica_options options = world->options;
	options.self = site->id;
	assert_int_equal(replica_new(&site->replica, &options, &host, world->now, &err), 0);
}

void world_crash(struct world *world, uint32_t number)
{
	struct world_site *site = &world->sites[number];
	replica_free(site->replica);
	site->replica = NULL;
	site->tasks_count = 0;
}

struct world *world_new(uint32_t sites)
{
	struct world *world = calloc(1, sizeof(*world));
	assert_non_null(world);
	world->options = replica_options_default();
	world->options.hash_key = (struct hash_key){1, 2};
	world->now = (struct replica_now){.us = 1000000, .wall_ms = 1700000000000};
	world->random = 1;
	world->latency_us = 1000;
	world->sites_count = sites;
	for (uint32_t i = 0; i < sites; i++) {
		world->sites[i].world = world;
		world->sites[i].id = 0x1100 + i + 1;
		world_start(world, i);
	}
	return world;
}

void world_free(struct world *world)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		struct world_site *site = &world->sites[i];
		replica_free(site->replica);
		for (uint32_t t = 0; t < REPLICA_TABLES; t++) {
			for (uint32_t k = 0; k < site->tables[t].count; k++) {
				buf_free(&site->tables[t].rows[k].key);
				buf_free(&site->tables[t].rows[k].row);
			}
			free(site->tables[t].rows);
		}
		free(site->tasks);
	}
	for (uint32_t i = 0; i < world->messages_count; i++)
		buf_free(&world->messages[i].bytes);
	free(world->messages);
	free(world);
}

void world_cut(struct world *world, uint32_t group)
{
	for (uint32_t i = 0; i < world->sites_count; i++)
		for (uint32_t k = 0; k < world->sites_count; k++)
			world->cut[i][k] = group != 0 && (group >> i & 1) != (group >> k & 1);
}

void world_met(struct world *world)
{
	for (uint32_t i = 0; i < world->sites_count; i++)
		for (uint32_t k = 0; k < world->sites_count; k++)
			if (i != k && world->sites[i].replica)
				replica_met(world->sites[i].replica, world->sites[k].id, world->now);
}

/* ---- Users ----------------------------------------------------------------------------------------------------------------------- */

struct replica_id world_id(uint32_t number)
{
	return replica_id_make(1700000000000, 7, number);
}

struct replica_class world_class(const char *text)
{
	static const struct {
		const char *name;
		uint8_t effect;
		bool repeatable;
	} classes[] = {{"create", ORDER_CREATE, false}, {"set", ORDER_REPLACE, true},   {"mark", ORDER_ASSIGN, true},
	               {"add", ORDER_RELATIVE, false},  {"delete", ORDER_DELETE, true}, {"times", ORDER_RELATIVE, false},
	               {"file", ORDER_REPLACE, true},   {"let", ORDER_ASSIGN, true}};
	for (uint8_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strncmp(text, classes[i].name, strlen(classes[i].name)) == 0)
			return (struct replica_class){.name = str_of(classes[i].name),
			                              .effect = classes[i].effect,
			                              .facet = strcmp(classes[i].name, "file") == 0,
			                              .class = i,
			                              .repeatable = classes[i].repeatable};
	fail_msg("no such operation: %s", text);
	return (struct replica_class){0};
}

uint64_t world_give(struct world *world, uint32_t site, uint32_t number)
{
	uint64_t ticket = ++world->ticket;
	replica_give_state(world->sites[site].replica, world_id(number), ticket, world->now);
	return ticket;
}

uint64_t world_extend(struct world *world, uint32_t site, uint32_t number, uint32_t to)
{
	struct err err = {0};
	uint64_t ticket = ++world->ticket;
	struct world_answer *slot = &world->answers[ticket];
	struct replica_extension extension = {.site = world->sites[to].id, .ticket = ticket};
	int code = replica_extend(world->sites[site].replica, world_id(number), &extension, world->now, &err);
	if (code == 0)
		return ticket;
	slot->there = true;
	slot->answer.code = code;
	copy_text(slot->text, sizeof(slot->text), str_of(err.text));
	return ticket;
}

int world_drop(struct world *world, uint32_t site, uint32_t number, uint32_t who, bool force)
{
	struct replica_drop drop = {.site = world->sites[who].id, .force = force};
	return replica_drop(world->sites[site].replica, world_id(number), &drop, world->now, NULL);
}

uint64_t world_submit(struct world *world, uint32_t site, const struct replica_submission *submission)
{
	struct replica_submission copy = *submission;
	copy.ticket = ++world->ticket;
	assert_true(copy.ticket < WORLD_ANSWERS);
	replica_submit(world->sites[site].replica, &copy, world->now);
	return copy.ticket;
}

uint64_t world_create(struct world *world, uint32_t site, uint32_t number, uint32_t members, const char *text)
{
	site_id ids[WORLD_SITES], holders[WORLD_SITES];
	struct replica_create create = {.service = STR_INIT("sample"),
	                                .type = STR_INIT("sample.counter"),
	                                .collection = STR_INIT("/counters"),
	                                .members = ids,
	                                .holders = holders,
	                                .span = world->span,
	                                .rules = world->rules};
	for (uint32_t i = world->sites_count; i-- > 0;) {
		if (members >> i & 1)
			ids[create.members_count++] = world->sites[i].id;
		if (world->holders >> i & 1)
			holders[create.holders_count++] = world->sites[i].id;
	}
	create.prime = world->span != REPLICA_ALIKE ? ids[0] : 0;
	if (world->holders != 0) {
		create.span = REPLICA_PLACED;
		create.prime = world->sites[site].id;
	}
	char unique[64];
	snprintf(unique, sizeof(unique), "%s #%llu", text, (unsigned long long)world->ticket + 1);
	if (strchr(text, '@'))
		create.name = str_make(strchr(text, '@') + 1, 1);
	struct replica_submission submission = {.create = &create,
	                                        .replicant = world_id(number),
	                                        .class = world_class("create"),
	                                        .request = {.head = str_of(unique)}};
	return world_submit(world, site, &submission);
}

uint64_t world_ask(struct world *world, uint32_t site, uint32_t number, const char *text)
{
	char unique[64];
	snprintf(unique, sizeof(unique), "%s #%llu", text, (unsigned long long)world->ticket + 1);
	struct replica_submission submission = {
		.replicant = world_id(number), .class = world_class(text), .request = {.head = str_of(unique)}};
	return world_submit(world, site, &submission);
}

struct world_item *world_item(struct world *world, uint32_t site, uint32_t number)
{
	struct replicant *r;
	if (replicant_load(world->sites[site].replica, world_id(number), &r) != 0 || r->kind != REPLICANT_LIVE)
		return NULL;
	char local_id[LIMIT_REPLICA_NAME_BYTES + 1] = "";
	memcpy(local_id, own_report(r)->local_id, own_report(r)->local_id_bytes);
	return item_of(&world->sites[site], local_id);
}

struct replica_view world_look(struct world *world, uint32_t site, uint32_t number, struct arena *arena)
{
	struct replica_view view;
	assert_int_equal(replica_look(world->sites[site].replica, arena, world_id(number), &view), 0);
	return view;
}

struct replica_op_view world_look_op(struct world *world, uint32_t site, struct replica_op_id op, struct arena *arena)
{
	struct replica_op_view view;
	assert_int_equal(replica_look_op(world->sites[site].replica, arena, op, &view), 0);
	return view;
}

/* ---- Names ------------------------------------------------------------------------------------------------------------------------ */

struct world_item *world_item_by(struct world *world, uint32_t site, uint32_t number)
{
	struct replicant *r;
	if (replicant_resolve(world->sites[site].replica, world_id(number), &r) != 0)
		return NULL;
	return world_item(world, site, r->id.bytes[15]);
}

uint32_t world_items_at(const struct world *world, uint32_t site)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < world->sites[site].items_count; i++)
		count += world->sites[site].items[i].there;
	return count;
}

uint32_t world_leads_to(struct world *world, uint32_t site, uint32_t number)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	uint32_t to =
		replica_look(world->sites[site].replica, &arena, world_id(number), &view) == 0 ? view.id.bytes[15] : 0;
	arena_free(&arena);
	return to;
}
