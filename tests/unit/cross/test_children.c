/* Children of a container: struct replica and struct cross_children together, at three sites in one process, with a small service each. First stories, then
 * chance: users make, rename and delete children of a few names at all sites; messages are lost and doubled, sites are cut off and crash at any moment, also between
 * what a service did and its answer.
 *
 * Always: no two items of one name at the services (under `strict`). At the end, when all is mended: each item has its name and no other has it, a name that no item has is free, nobody says
 * anything any more; and when all was deleted, no row is left of it. */
#include "cross_test.h"

#include "cross/children.h"

#include "sim/choir_rows.h"

#include <stdio.h>
#include <stdlib.h>

enum { SITES = 3, HELD = 512, ITEMS = 4096, USERS = 4096, WIRE = 4096, SECOND = 1000000, NAMES = 5 };

static const struct replica_class class_create = {STR_INIT("create"), ORDER_CREATE, 0, 0, false};
static const struct replica_class class_rename = {STR_INIT("rename"), ORDER_ASSIGN, 0, 1, true};
static const struct replica_class class_delete = {STR_INIT("delete"), ORDER_DELETE, 0, 2, true};

struct item {
	bool there;
	uint32_t site;
	struct replica_id id;
	char name[16];
};

enum held_kind { HELD_REPLICA, HELD_NAMES, HELD_RUN, HELD_GRANT };

struct held {
	enum held_kind kind;
	uint32_t to;
	struct buf bytes;
	uint64_t task;
	enum replica_task_kind what;
	struct replica_id id;
	char verb[32];
	struct cross_answer answer;
	bool done; /* the service has done it, and its answer is on the way */
	struct replica_outcome outcome;
};

struct site {
	uint32_t number;
	struct replica *replica;
	struct cross_children *children;
	struct choir_rows rows; /* of replicants */
	struct choir_rows name_rows;
	struct held held[HELD]; /* until the commit */
	uint32_t held_count;
	struct held runs[HELD]; /* at the service */
	uint32_t runs_count;
	uint32_t lost;
};

/* What somebody asked for. */
struct user {
	uint32_t site;
	enum { MAKES, RENAMES, DELETES } wants;
	struct replica_id child;
	char name[16];
	bool answered;
	int code; /* of the answer: 0, or why not */
	bool accepted;
};

static struct site sites[SITES];
static struct item items[ITEMS];
static uint32_t items_count;
static struct user users[USERS];
static uint64_t users_count;
static struct {
	uint32_t from, to;
	bool names;
	struct buf bytes;
} wire[WIRE];
static uint32_t wire_count;
static bool cut[SITES], optimistic, removed[SITES], refusing;
static uint64_t now_us, luck;
static uint32_t ids_made;
static struct replica_id container;

static site_id id_of(uint32_t number)
{
	return 0x2201 + number;
}

static struct replica_now now(void)
{
	return (struct replica_now){now_us, 1700000000000 + now_us / 1000};
}

static bool same(struct replica_id a, struct replica_id b)
{
	return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

static struct replica_id make_id(void)
{
	return replica_id_make(1700000000000 + now_us / 1000, 7, ++ids_made);
}

/* ---- The service --------------------------------------------------------------------------------------------------------------- */

static struct item *item_of(uint32_t site, struct replica_id id)
{
	for (uint32_t i = 0; i < items_count; i++)
		if (items[i].site == site && same(items[i].id, id))
			return &items[i];
	return NULL;
}

/* A container of `strict` names never has one twice, whatever anybody was told. */
static void check_names(void)
{
	for (uint32_t i = 0; i < items_count && !optimistic; i++) {
		for (uint32_t k = i + 1; k < items_count; k++) {
			bool both =
				items[i].there && items[k].there && !same(items[i].id, container) && !same(items[k].id, container);
			if (both && strcmp(items[i].name, items[k].name) == 0)
				fail_msg("%s is there twice, at %u and at %u", items[i].name, items[i].site, items[k].site);
		}
	}
}

static struct replica_outcome serve(uint32_t site, const struct held *run)
{
	static char local_id[16];
	struct item *item = item_of(site, run->id);
	struct replica_outcome outcome = {.kind = REPLICA_ACCEPTED, .status = 200, .answer = STR("")};
	char verb[16] = "", name[16] = "";
	sscanf(run->verb, "%15s %15s", verb, name);
	snprintf(local_id, sizeof(local_id), "i%u-%u", site, items_count);
	outcome.local_id = STR("");
	if (run->what == REPLICA_INQUIRE) {
		outcome.kind = item && item->there ? REPLICA_ACCEPTED : REPLICA_REFUSED;
		if (item)
			snprintf(local_id, sizeof(local_id), "i%u-%u", site, (uint32_t)(item - items));
		outcome.local_id = outcome.kind == REPLICA_ACCEPTED ? str_of(local_id) : STR("");
	} else if (strcmp(verb, "create") == 0) {
		if (refusing && !same(run->id, container) && next_random(&luck) % 8 == 0)
			return (struct replica_outcome){
				.kind = REPLICA_REFUSED, .status = 422, .answer = STR(""), .local_id = STR("")};
		assert_true(items_count < ITEMS);
		items[items_count] = (struct item){.there = true, .site = site, .id = run->id};
		memcpy(items[items_count++].name, name, sizeof(name));
		outcome.local_id = str_of(local_id);
	} else if (!item || !item->there) {
		outcome.kind = strcmp(verb, "delete") == 0 ? REPLICA_ACCEPTED : REPLICA_REFUSED;
		outcome.status = 404;
	} else if (strcmp(verb, "rename") == 0) {
		memcpy(item->name, name, sizeof(name));
	} else {
		item->there = false;
	}
	check_names();
	return outcome;
}

/* ---- The host -------------------------------------------------------------------------------------------------------------------- */

static int get_row(struct choir_rows *rows, int table, struct str key, struct buf *row)
{
	const struct choir_row *found = choir_rows_get(rows, (enum replica_table)table, key);
	if (found)
		buf_put(row, choir_row_value(found));
	return found ? 0 : ERR_NOT_FOUND;
}

static int scan_rows(struct choir_rows *rows, int table, struct str prefix, struct str from,
                     bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	const struct choir_table *all = &rows->tables[table];
	struct str begin = from.length > 0 ? from : prefix;
	for (uint32_t i = choir_rows_find(rows, (enum replica_table)table, begin); i < all->count; i++) {
		struct str key = choir_row_key(all->rows[i]);
		if (key.length < prefix.length || memcmp(key.at, prefix.at, prefix.length) != 0 ||
		    !each(each_context, key, choir_row_value(all->rows[i])))
			break;
	}
	return 0;
}

static int replica_get(void *context, enum replica_table table, struct str key, struct buf *row)
{
	return get_row(&((struct site *)context)->rows, table, key, row);
}

static void replica_put(void *context, enum replica_table table, struct str key, struct str row)
{
	choir_rows_put(&((struct site *)context)->rows, table, key, row);
}

static void replica_remove(void *context, enum replica_table table, struct str key)
{
	choir_rows_remove(&((struct site *)context)->rows, table, key);
}

static int replica_scan(void *context, enum replica_table table, struct str prefix, struct str from,
                        bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	return scan_rows(&((struct site *)context)->rows, table, prefix, from, each, each_context);
}

static int names_get(void *context, enum cross_table table, struct str key, struct buf *row)
{
	return get_row(&((struct site *)context)->name_rows, table, key, row);
}

static void names_put(void *context, enum cross_table table, struct str key, struct str row)
{
	choir_rows_put(&((struct site *)context)->name_rows, (enum replica_table)table, key, row);
}

static void names_remove_row(void *context, enum cross_table table, struct str key)
{
	choir_rows_remove(&((struct site *)context)->name_rows, (enum replica_table)table, key);
}

static int names_scan(void *context, enum cross_table table, struct str prefix,
                      bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	return scan_rows(&((struct site *)context)->name_rows, table, prefix, STR(""), each, each_context);
}

static struct held *hold(struct site *it, enum held_kind kind)
{
	assert_true(it->held_count < HELD);
	struct held *held = &it->held[it->held_count++];
	*held = (struct held){.kind = kind};
	return held;
}

static void hold_replica(void *context, site_id to, struct str message)
{
	struct held *held = hold(context, HELD_REPLICA);
	held->to = (uint32_t)(to - id_of(0));
	buf_put(&held->bytes, message);
}

static void hold_names(void *context, site_id to, struct str message)
{
	struct held *held = hold(context, HELD_NAMES);
	held->to = (uint32_t)(to - id_of(0));
	buf_put(&held->bytes, message);
}

static void hold_run(void *context, const struct replica_task *task)
{
	struct held *held = hold(context, HELD_RUN);
	held->task = task->number;
	held->what = task->kind;
	held->id = task->op.replicant;
	snprintf(held->verb, sizeof(held->verb), "%.*s", STR_FMT(task->request->head));
}

static void hold_answer(void *context, const struct replica_answer *answer)
{
	struct user *user = &users[answer->ticket];
	(void)context;
	assert_false(user->answered);
	user->answered = true;
	user->code = answer->code;
	user->accepted = answer->code == 0 && answer->outcome.kind == REPLICA_ACCEPTED;
}

static void hold_grant(void *context, const struct cross_answer *answer)
{
	hold(context, HELD_GRANT)->answer = *answer;
}

static void note_lost(void *context, const struct cross_lost *lost)
{
	(void)lost;
	((struct site *)context)->lost++;
}

static void note_event(void *context, const struct replica_event *event)
{
	struct site *it = context;
	if (it->children)
		cross_children_event(it->children, event);
}

static void no_fetch(void *context, struct str blob, uint64_t bytes, site_id from)
{
	(void)context, (void)blob, (void)bytes, (void)from;
}

static void no_drop(void *context, struct str blob)
{
	(void)context, (void)blob;
}

static bool is_reachable(void *context, site_id site)
{
	(void)context;
	return !cut[site - id_of(0)];
}

static uint64_t draw(void *context)
{
	(void)context;
	return next_random(&luck);
}

static bool is_optimistic(void *context, const struct replica_view *view)
{
	(void)context;
	assert_true(same(view->id, container));
	return optimistic;
}

static bool is_removed(void *context, site_id site)
{
	(void)context;
	return removed[site - id_of(0)];
}

static void start(uint32_t number)
{
	struct site *it = &sites[number];
	struct replica_options options = replica_options_default();
	struct cross_names_options names = cross_names_options_default();
	struct replica_host host = {it,           replica_get,  replica_put, replica_remove, replica_scan,
	                            hold_replica, hold_run,     hold_answer, no_fetch,       no_drop,
	                            note_event,   is_reachable, draw};
	struct cross_children_host above = {.names = {it, names_get, names_put, names_remove_row, names_scan, hold_names,
	                                              hold_grant, note_lost, NULL, draw},
	                                    .optimistic = is_optimistic,
	                                    .is_removed = is_removed};
	it->number = number;
	options.self = names.self = id_of(number);
	assert_int_equal(replica_new(&it->replica, &options, &host, now(), NULL), 0);
	assert_int_equal(cross_children_new(&it->children, &names, it->replica, &above, now(), NULL), 0);
}

/* ---- Commits ---------------------------------------------------------------------------------------------------------------------- */

static void post(uint32_t from, const struct held *held)
{
	assert_true(wire_count < WIRE);
	wire[wire_count].from = from;
	wire[wire_count].to = held->to;
	wire[wire_count].names = held->kind == HELD_NAMES;
	wire[wire_count++].bytes = held->bytes;
}

static void submit(struct site *it, uint64_t ticket)
{
	static const uint8_t resolutions[9] = {0};
	const struct user *user = &users[ticket];
	char head[40], collection[80];
	struct buf id = {0};
	site_id members[SITES], self = id_of(it->number);
	for (uint32_t i = 0; i < SITES; i++)
		members[i] = id_of(i);
	replica_id_put(container, &id);
	snprintf(collection, sizeof(collection), "/projects/%s/things", buf_c(&id));
	bool outer = same(user->child, container);
	struct replica_create create = {.service = STR("sample"),
	                                .type = outer ? STR("sample.project") : STR("sample.thing"),
	                                .collection = outer ? STR("/projects") : str_of(collection),
	                                .name = str_of(user->name),
	                                .members = members,
	                                .members_count = SITES,
	                                .consistency = REPLICA_EVENTUAL,
	                                .rules = {.classes = 3, .resolutions = resolutions},
	                                .span = outer ? REPLICA_CONTAINER : REPLICA_PLACED,
	                                .prime = outer ? id_of(0) : self,
	                                .holders = &self,
	                                .holders_count = outer ? 0 : 1};
	static const char *const verbs[] = {"create", "rename", "delete"};
	static const struct replica_class *const classes[] = {&class_create, &class_rename, &class_delete};
	snprintf(head, sizeof(head), "%s %s", verbs[user->wants], user->name);
	struct replica_submission submission = {
		.ticket = ticket,
		.create = user->wants == MAKES ? &create : NULL,
		.replicant = user->child,
		.class = *classes[user->wants],
		.request = {.head = str_of(head), .body = STR(""), .blob = STR(""), .secret = STR("")},
		.key = STR("")};
	replica_submit(it->replica, &submission, now());
	cross_children_over(it->children, user->child);
	buf_free(&id);
}

static void hear_grant(struct site *it, const struct cross_answer *answer)
{
	struct user *user = &users[answer->ticket];
	if (answer->code == 0) {
		submit(it, answer->ticket);
		return;
	}
	assert_false(user->answered);
	user->answered = true;
	user->code = answer->code;
}

static void commit(uint32_t number)
{
	struct site *it = &sites[number];
	struct held taken[HELD];
	cross_children_review(it->children, now());
	choir_rows_commit(&it->rows);
	choir_rows_commit(&it->name_rows);
	uint32_t count = it->held_count;
	memcpy(taken, it->held, count * sizeof(taken[0]));
	it->held_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		switch (taken[i].kind) {
		case HELD_REPLICA:
		case HELD_NAMES: post(number, &taken[i]); break;
		case HELD_RUN:
			assert_true(it->runs_count < HELD);
			it->runs[it->runs_count++] = taken[i];
			break;
		case HELD_GRANT: hear_grant(it, &taken[i].answer); break;
		}
	}
}

static void stop(uint32_t number)
{
	struct site *it = &sites[number];
	cross_children_free(it->children);
	it->children = NULL;
	replica_free(it->replica);
	it->replica = NULL;
	for (uint32_t i = 0; i < it->held_count; i++)
		buf_free(&it->held[i].bytes);
	it->held_count = it->runs_count = 0; /* what a service has done it has done */
}

static void crash(uint32_t number)
{
	struct site *it = &sites[number];
	stop(number);
	choir_rows_rollback(&it->rows);
	choir_rows_rollback(&it->name_rows);
	start(number);
}

/* ---- What happens ------------------------------------------------------------------------------------------------------------------- */

static void deliver(uint32_t index, bool keep)
{
	uint32_t from = wire[index].from, to = wire[index].to;
	struct buf bytes = wire[index].bytes;
	bool names = wire[index].names;
	if (!cut[from] && !cut[to] && names)
		cross_children_receive(sites[to].children, id_of(from), buf_str(&bytes), now());
	else if (!cut[from] && !cut[to])
		replica_receive(sites[to].replica, id_of(from), buf_str(&bytes), now());
	if (keep)
		return;
	wire[index] = wire[--wire_count];
	buf_free(&bytes);
}

/* One of a service's requests gets on: is carried out, or its answer comes. */
static void serve_one(struct site *it, uint32_t index)
{
	struct held *run = &it->runs[index];
	if (!run->done) {
		run->outcome = serve(it->number, run);
		run->done = true;
		return;
	}
	struct held done = *run;
	char verb[16] = "", name[16] = "";
	it->runs[index] = it->runs[--it->runs_count];
	sscanf(done.verb, "%15s %15s", verb, name);
	replica_executed(it->replica, done.task, &done.outcome, now());
	if (done.outcome.kind == REPLICA_ACCEPTED)
		cross_children_named(it->children, done.id, str_of(name), now());
	cross_children_note(it->children, done.id);
}

/* Returns the ticket. */
static uint64_t ask(uint32_t at, const struct user *wish)
{
	struct site *it = &sites[at];
	assert_true(users_count + 1 < USERS);
	uint64_t ticket = ++users_count;
	struct user *user = &users[ticket];
	site_id where = 0;
	*user = *wish;
	user->site = at;
	int code = CROSS_NOTHING_TO_ASK;
	if (user->wants != DELETES && !same(user->child, container)) {
		struct cross_wish claim = {.creates = user->wants == MAKES,
		                           .container = container,
		                           .type = STR("sample.thing"),
		                           .child = user->child,
		                           .name = str_of(user->name)};
		code = cross_children_claim(it->children, &claim, ticket, now(), &where, NULL);
	}
	if (code == CROSS_NOTHING_TO_ASK)
		submit(it, ticket);
	else if (code != CROSS_ASKED_FOR) {
		user->answered = true;
		user->code = code;
	}
	return ticket;
}

static uint64_t make(uint32_t at, const char *name)
{
	struct user user = {.wants = MAKES, .child = make_id()};
	snprintf(user.name, sizeof(user.name), "%s", name);
	return ask(at, &user);
}

static uint64_t change(uint32_t at, struct replica_id child, const char *name)
{
	struct user user = {.wants = name ? RENAMES : DELETES, .child = child};
	snprintf(user.name, sizeof(user.name), "%s", name ? name : "");
	return ask(at, &user);
}

/* All that can happen by itself, for so long. */
static void settle(uint64_t seconds)
{
	uint64_t until = now_us + seconds * SECOND;
	while (now_us < until) {
		bool quiet = true;
		for (uint32_t i = 0; i < SITES; i++) {
			if (removed[i])
				continue;
			replica_tick(sites[i].replica, now());
			cross_names_tick(cross_children_names(sites[i].children), now());
			while (sites[i].runs_count > 0)
				serve_one(&sites[i], 0);
			commit(i);
		}
		while (wire_count > 0) {
			uint32_t to = wire[0].to;
			quiet = false;
			deliver(0, false);
			if (!removed[to])
				commit(to);
		}
		now_us += quiet ? SECOND / 4 : 1000;
	}
}

static int setup(void **state)
{
	(void)state;
	now_us = SECOND;
	optimistic = refusing = false;
	items_count = 0;
	users_count = 0;
	memset(cut, 0, sizeof(cut));
	memset(removed, 0, sizeof(removed));
	container = make_id();
	for (uint32_t i = 0; i < SITES; i++)
		start(i);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	while (wire_count > 0)
		buf_free(&wire[--wire_count].bytes);
	for (uint32_t i = 0; i < SITES; i++) {
		stop(i);
		choir_rows_free(&sites[i].rows);
		choir_rows_free(&sites[i].name_rows);
		sites[i] = (struct site){0};
	}
	return 0;
}

static void make_container(void)
{
	struct user user = {.wants = MAKES, .child = container, .name = "outer"};
	uint64_t ticket = ask(0, &user);
	settle(5);
	assert_true(users[ticket].accepted);
}

/* ---- Stories -------------------------------------------------------------------------------------------------------------------------- */

static void each_site_makes_the_same_first_list(void **state)
{
	(void)state;
	struct cross_container first, other;
	make_container();
	assert_true(cross_names_get(cross_children_names(sites[0].children), container, &first));
	assert_int_equal(first.sites[0].site, id_of(0));
	for (uint32_t i = 1; i < SITES; i++) {
		assert_true(cross_names_get(cross_children_names(sites[i].children), container, &other));
		assert_memory_equal(&first, &other, sizeof(first));
	}
}

static void a_name_is_one_childs(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make(1, "red"), b = make(2, "red");
	settle(5);
	assert_true(users[a].answered && users[b].answered);
	assert_int_equal(users[a].accepted + users[b].accepted, 1);
	struct user *kept = &users[users[a].accepted ? a : b], *refused = &users[users[a].accepted ? b : a];
	assert_int_equal(refused->code, ERR_CONFLICT);
	uint64_t gone = change(kept->site, kept->child, NULL);
	settle(5);
	assert_true(users[gone].accepted);
	uint64_t again = make(refused->site, "red");
	settle(5);
	assert_true(users[again].accepted);
}

static void a_rename_takes_one_name_and_leaves_one(void **state)
{
	(void)state;
	struct cross_claim_view view;
	make_container();
	uint64_t a = make(1, "red"), b = make(2, "blue");
	settle(5);
	uint64_t taken = change(1, users[a].child, "blue"), free = change(2, users[b].child, "green");
	settle(5);
	assert_int_equal(users[taken].code, ERR_CONFLICT);
	assert_true(users[free].accepted);
	assert_int_equal(cross_children_look(sites[2].children, users[b].child, &view), 0);
	assert_true(str_equal(view.claim.name, STR("green")));
	uint64_t now_free = change(1, users[a].child, "blue");
	settle(5);
	assert_true(users[now_free].accepted);
	uint64_t left = make(0, "red");
	settle(5);
	assert_true(users[left].accepted);
}

/* The maker crashes when its name is granted, before anything was made. */
static void a_name_of_nobody_is_free_after_a_crash(void **state)
{
	(void)state;
	make_container();
	make(1, "red");
	cross_children_review(sites[1].children, now());
	commit(1); /* it is asked for */
	while (wire_count > 0) {
		deliver(0, false);
		commit(0);
		if (sites[1].held_count > 0)
			break;
	}
	crash(1);
	settle(130);
	uint64_t other = make(2, "red");
	settle(5);
	assert_true(users[other].accepted);
}

/* It crashes when the service has made it, and nobody has heard of that. */
static void what_was_made_keeps_its_name_after_a_crash(void **state)
{
	(void)state;
	make_container();
	make(0, "red");
	for (int i = 0; i < 8 && sites[0].runs_count == 0; i++)
		commit(0);
	assert_int_equal(sites[0].runs_count, 1);
	serve_one(&sites[0], 0);
	crash(0);
	settle(130);
	uint64_t other = make(2, "red");
	settle(5);
	assert_int_equal(users[other].code, ERR_CONFLICT);
}

static void the_next_site_is_prime(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make(1, "red");
	settle(5);
	assert_true(users[a].accepted);
	removed[0] = cut[0] = true;
	for (uint32_t i = 1; i < SITES; i++) {
		replica_site_removed(sites[i].replica, id_of(0), now());
		cross_children_site_removed(sites[i].children, id_of(0), now());
	}
	settle(20);
	struct cross_container list;
	for (uint32_t i = 1; i < SITES; i++) {
		assert_true(cross_names_get(cross_children_names(sites[i].children), container, &list));
		assert_int_equal(list.count, 2);
		assert_int_equal(list.sites[0].site, id_of(1));
	}
	uint64_t b = make(2, "red"), c = make(2, "blue");
	settle(20);
	assert_int_equal(users[b].code, ERR_CONFLICT);
	assert_true(users[c].accepted);
}

static void sites_are_changed_at_the_prime(void **state)
{
	(void)state;
	site_id prime = 0;
	make_container();
	struct cross_change out = {container, id_of(2), false}, in = {container, id_of(2), true};
	assert_int_equal(cross_children_change(sites[1].children, &out, now(), &prime, NULL), ERR_UNAVAILABLE);
	assert_int_equal(prime, id_of(0));
	assert_int_equal(cross_children_change(sites[0].children, &out, now(), &prime, NULL), 0);
	assert_int_equal(cross_children_change(sites[0].children, &out, now(), &prime, NULL), ERR_NOT_FOUND);
	settle(10);
	assert_int_equal(cross_children_change(sites[0].children, &in, now(), &prime, NULL), 0);
	settle(10);
	uint64_t a = make(2, "red");
	settle(10);
	assert_true(users[a].accepted);
}

/* ---- Chance ----------------------------------------------------------------------------------------------------------------------------- */

static struct item *some_item(void)
{
	for (int tries = 0; tries < 8 && items_count > 0; tries++) {
		struct item *item = &items[next_random(&luck) % items_count];
		if (item->there && !same(item->id, container))
			return item;
	}
	return NULL;
}

static void one_event(void)
{
	static const char *const names[NAMES] = {"red", "blue", "green", "white", "black"};
	uint32_t at = (uint32_t)(next_random(&luck) % SITES);
	const char *name = names[next_random(&luck) % NAMES];
	struct site *it = &sites[at];
	struct item *item;
	switch (next_random(&luck) % 32) {
	case 0:
	case 1: make(at, name); break;
	case 2:
		if ((item = some_item()) != NULL)
			change(item->site, item->id, name);
		break;
	case 3:
		if ((item = some_item()) != NULL)
			change(item->site, item->id, NULL);
		break;
	case 4:
		if (next_random(&luck) % 6 == 0)
			crash(at);
		break;
	case 5: cut[at] = next_random(&luck) % 4 == 0; break;
	case 6: cut[at] = false; break;
	case 7: now_us += next_random(&luck) % (2 * SECOND); break;
	case 8:
	case 9:
	case 10:
	case 11:
	case 12: commit(at); break;
	case 13:
	case 14:
	case 15:
	case 16:
		if (it->runs_count > 0)
			serve_one(it, (uint32_t)(next_random(&luck) % it->runs_count));
		break;
	case 17:
	case 18:
		replica_tick(it->replica, now());
		cross_names_tick(cross_children_names(it->children), now());
		break;
	default:
		if (wire_count > 0)
			deliver((uint32_t)(next_random(&luck) % wire_count), next_random(&luck) % 16 == 0);
		break;
	}
	now_us += next_random(&luck) % 20000;
}

static bool any_there(const char *name)
{
	for (uint32_t i = 0; i < items_count; i++)
		if (items[i].there && !same(items[i].id, container) && strcmp(items[i].name, name) == 0)
			return true;
	return false;
}

static void check_end(void)
{
	static const char *const names[NAMES] = {"red", "blue", "green", "white", "black"};
	uint32_t kept[NAMES] = {0};
	for (uint32_t i = 0; i < items_count; i++) {
		struct cross_claim_view view;
		if (!items[i].there || same(items[i].id, container))
			continue;
		assert_int_equal(cross_children_look(sites[items[i].site].children, items[i].id, &view), 0);
		assert_true(str_equal(view.claim.name, str_of(items[i].name)));
		assert_true(view.state == CROSS_KEPT || (optimistic && view.state == CROSS_LOST));
		for (uint32_t k = 0; k < NAMES; k++)
			kept[k] += view.state == CROSS_KEPT && strcmp(items[i].name, names[k]) == 0;
	}
	for (uint32_t k = 0; k < NAMES; k++) {
		struct cross_entry_view entry;
		int code = cross_names_entry(cross_children_names(sites[0].children), container, STR("sample.thing"),
		                             str_of(names[k]), &entry);
		if (optimistic) /* one that lost its name stays so, also when who had it is gone */
			assert_true(kept[k] <= (uint32_t)any_there(names[k]));
		else
			assert_int_equal(kept[k], any_there(names[k]));
		assert_int_equal(code, kept[k] ? 0 : ERR_NOT_FOUND);
	}
	for (uint32_t i = 0; i < SITES; i++)
		assert_int_equal(cross_names_counters(cross_children_names(sites[i].children)).active, 0);
	/* Who was told that it was made, and never asked to delete it, has it. */
	for (uint64_t ticket = 1; ticket <= users_count; ticket++) {
		bool deleted = false;
		if (users[ticket].wants != MAKES || !users[ticket].accepted)
			continue;
		for (uint64_t other = 1; other <= users_count; other++)
			deleted |= users[other].wants == DELETES && same(users[other].child, users[ticket].child);
		const struct item *item = item_of(users[ticket].site, users[ticket].child);
		assert_true(deleted || (item && item->there));
	}
}

static void delete_all(void)
{
	for (uint32_t i = 0; i < items_count; i++)
		if (items[i].there && !same(items[i].id, container))
			change(items[i].site, items[i].id, NULL);
	settle(130);
	change(1, container, NULL);
	settle(130);
	for (uint32_t i = 0; i < SITES; i++) {
		struct cross_container list;
		assert_false(cross_names_get(cross_children_names(sites[i].children), container, &list));
		for (int table = 0; table < CROSS_TABLES; table++)
			if (table != CROSS_META)
				assert_int_equal(sites[i].name_rows.tables[table].count, 0);
		for (uint32_t k = 0; k < items_count; k++)
			assert_false(items[k].there);
	}
}

static void by_chance(bool hopeful, uint64_t seeds, uint32_t events)
{
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		void *state = NULL;
		teardown(&state);
		setup(&state);
		print_message("seed %llu\n", (unsigned long long)seed); /* the last one is to be looked at */
		luck = seed + (hopeful ? 1000000 : 0);
		optimistic = hopeful;
		make_container();
		refusing = true;
		for (uint32_t i = 0; i < events && users_count + 200 < USERS; i++)
			one_event();
		refusing = false;
		memset(cut, 0, sizeof(cut));
		settle(400);
		check_end();
		delete_all();
	}
}

static void strict_by_chance(void **state)
{
	(void)state;
	by_chance(false, 60, 6000);
}

static void optimistic_by_chance(void **state)
{
	(void)state;
	by_chance(true, 60, 6000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_site_makes_the_same_first_list, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_is_one_childs, setup, teardown),
		cmocka_unit_test_setup_teardown(a_rename_takes_one_name_and_leaves_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_of_nobody_is_free_after_a_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_made_keeps_its_name_after_a_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_site_is_prime, setup, teardown),
		cmocka_unit_test_setup_teardown(sites_are_changed_at_the_prime, setup, teardown),
		cmocka_unit_test_setup_teardown(strict_by_chance, setup, teardown),
		cmocka_unit_test_setup_teardown(optimistic_by_chance, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
