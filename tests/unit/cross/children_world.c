/* children_world.h says what it is. Whatever happens: no two items of one name are at the services, under `strict`. */
#include "children_world.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

static const struct replica_class class_create = {STR_INIT("create"), ORDER_CREATE, 0, 0, false};
static const struct replica_class class_rename = {STR_INIT("rename"), ORDER_ASSIGN, 0, 1, true};
static const struct replica_class class_delete = {STR_INIT("delete"), ORDER_DELETE, 0, 2, true};

struct site sites[SITES];
struct item items[ITEMS];
uint32_t items_count;
struct user users[USERS];
uint64_t users_count;
static struct {
	uint32_t from, to;
	bool names;
	struct buf bytes;
} wire[WIRE];
uint32_t wire_count;
bool cut[SITES], optimistic, removed[SITES], refusing;
uint64_t now_us, luck;
uint32_t ids_made;
struct replica_id container;

site_id id_of(uint32_t number)
{
	return 0x2201 + number;
}

struct replica_now now(void)
{
	return (struct replica_now){now_us, 1700000000000 + now_us / 1000};
}

bool same(struct replica_id a, struct replica_id b)
{
	return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

struct replica_id make_id(void)
{
	return replica_id_make(1700000000000 + now_us / 1000, 7, ++ids_made);
}

/* ---- The service --------------------------------------------------------------------------------------------------------------- */

struct item *item_of(uint32_t site, struct replica_id id)
{
	struct item *found = NULL; /* one that was deleted may have been made again */
	for (uint32_t i = 0; i < items_count; i++)
		if (items[i].site == site && same(items[i].id, id) && (!found || items[i].there))
			found = &items[i];
	return found;
}

static const struct user *maker_of(struct replica_id id)
{
	for (uint64_t i = 1; i <= users_count; i++)
		if (users[i].wants == MAKES && same(users[i].child, id))
			return &users[i];
	return NULL;
}

bool is_shared(struct replica_id id)
{
	const struct user *maker = maker_of(id);
	return maker && (maker->holders & ~(1u << maker->site)) != 0;
}

/* To be renamed, or deleted. */
bool was_asked_for(struct replica_id id)
{
	for (uint64_t i = 1; i <= users_count; i++)
		if (users[i].wants != MAKES && same(users[i].child, id))
			return true;
	return false;
}

/* Its name is free, or another, where that was asked for; others that hold it hear of it later. */
static bool is_on_its_way(struct replica_id id)
{
	return is_shared(id) && was_asked_for(id);
}

/* A container of `strict` names never has one twice, whatever anybody was told. */
static void check_names(void)
{
	for (uint32_t i = 0; i < items_count && !optimistic; i++) {
		for (uint32_t k = i + 1; k < items_count; k++) {
			bool both =
				items[i].there && items[k].there && !same(items[i].id, container) && !same(items[k].id, container);
			both &= !removed[items[i].site] && !removed[items[k].site] && !same(items[i].id, items[k].id) &&
			        !is_on_its_way(items[i].id) && !is_on_its_way(items[k].id);
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
	return get_row(&((struct site *)context)->rows, (int)table, key, row);
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
	return scan_rows(&((struct site *)context)->rows, (int)table, prefix, from, each, each_context);
}

static int names_get(void *context, enum cross_table table, struct str key, struct buf *row)
{
	return get_row(&((struct site *)context)->name_rows, (int)table, key, row);
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
	return scan_rows(&((struct site *)context)->name_rows, (int)table, prefix, STR(""), each, each_context);
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

static void hear_removed(struct site *it, uint32_t number)
{
	replica_site_removed(it->replica, id_of(number), now());
	cross_children_site_removed(it->children, id_of(number), now());
}

static void start(uint32_t number)
{
	struct site *it = &sites[number];
	struct replica_options options = replica_options_default();
	struct cross_names_options names = cross_names_options_default();
	struct replica_host host = {it,           replica_get,  replica_put, replica_remove, replica_scan,
	                            hold_replica, hold_run,     hold_answer, no_fetch,       no_drop,
	                            note_event,   is_reachable, draw};
	options.holds_containers = true;
	struct cross_children_host above = {.names = {it, names_get, names_put, names_remove_row, names_scan, hold_names,
	                                              hold_grant, note_lost, NULL, draw, NULL},
	                                    .optimistic = is_optimistic,
	                                    .is_removed = is_removed};
	it->number = number;
	options.self = names.self = id_of(number);
	assert_int_equal(replica_new(&it->replica, &options, &host, now(), NULL), 0);
	assert_int_equal(cross_children_new(&it->children, &names, it->replica, &above, now(), NULL), 0);
	for (uint32_t i = 0; i < SITES; i++)
		if (removed[i] && i != number)
			hear_removed(it, i);
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

/* The sites of the container, as this one knows them. */
static uint32_t members_here(struct site *it, site_id members[SITES])
{
	struct arena arena;
	struct replica_view view;
	uint32_t count = 0;
	arena_init(&arena, 0);
	if (replica_look(it->replica, &arena, container, &view) == 0)
		for (; count < view.members_count; count++)
			members[count] = view.members[count].site;
	arena_free(&arena);
	return count;
}

static void submit(struct site *it, uint64_t ticket)
{
	static const uint8_t resolutions[9] = {0};
	const struct user *user = &users[ticket];
	char head[40], collection[80];
	struct buf id = {0};
	site_id members[SITES], holders[SITES], self = id_of(it->number);
	uint32_t holders_count = 0;
	bool outer = same(user->child, container);
	uint32_t members_count = outer ? SITES : members_here(it, members);
	for (uint32_t i = 0; i < SITES && outer; i++)
		members[i] = id_of(i);
	for (uint32_t i = 0; i < members_count && !outer; i++)
		if (members[i] == self || user->holders >> (members[i] - id_of(0)) & 1)
			holders[holders_count++] = members[i];
	replica_id_put(container, &id);
	snprintf(collection, sizeof(collection), "/projects/%s/things", buf_c(&id));
	struct replica_create create = {.service = STR("sample"),
	                                .type = outer ? STR("sample.project") : STR("sample.thing"),
	                                .collection = outer ? STR("/projects") : str_of(collection),
	                                .name = str_of(user->name),
	                                .members = members,
	                                .members_count = members_count,
	                                .consistency = REPLICA_EVENTUAL,
	                                .rules = {.classes = 3, .resolutions = resolutions},
	                                .span = outer ? REPLICA_CONTAINER : REPLICA_PLACED,
	                                .prime = outer ? id_of(0) : self,
	                                .holders = holders,
	                                .holders_count = holders_count};
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

void commit(uint32_t number)
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

void crash(uint32_t number)
{
	struct site *it = &sites[number];
	stop(number);
	choir_rows_rollback(&it->rows);
	choir_rows_rollback(&it->name_rows);
	start(number);
}

/* As src/engine/follow.c does. */
void follow(uint32_t number)
{
	struct site *it = &sites[number];
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	if (replica_look(it->replica, &arena, container, &view) == 0 && !view.deleted && !view.left) {
		cross_children_follow(it->children, &view, now());
		if (replica_is_leaving(it->replica, container) && cross_children_may_leave(it->children, &view, now()))
			replica_let_go(it->replica, container, now());
	}
	arena_free(&arena);
}

/* The site is to leave the container; 0, or why not. */
int withdraw(uint32_t at, uint32_t number)
{
	return replica_drop(sites[at].replica, container, &(struct replica_drop){.site = id_of(number)}, now(), NULL);
}

void remove_site(uint32_t number)
{
	removed[number] = cut[number] = true;
	for (uint32_t i = 0; i < SITES; i++) {
		if (!removed[i])
			hear_removed(&sites[i], number);
	}
}

int force_out(uint32_t at, uint32_t number)
{
	struct replica_drop force = {.site = id_of(number), .force = true};
	return replica_drop(sites[at].replica, container, &force, now(), NULL);
}

bool has_left(uint32_t number)
{
	struct cross_container list;
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool left = replica_look(sites[number].replica, &arena, container, &view) == ERR_NOT_FOUND || view.left;
	arena_free(&arena);
	return left && !cross_names_get(cross_children_names(sites[number].children), container, &list);
}

/* ---- What happens ------------------------------------------------------------------------------------------------------------------- */

void deliver(uint32_t index, bool keep)
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
void serve_one(struct site *it, uint32_t index)
{
	struct held *run = &it->runs[index];
	if (!run->done) {
		run->outcome = serve(it->number, run);
		snprintf(run->local_id, sizeof(run->local_id), "%.*s", STR_FMT(run->outcome.local_id));
		run->done = true;
		return;
	}
	struct held done = *run;
	char verb[16] = "", name[16] = "";
	it->runs[index] = it->runs[--it->runs_count];
	done.outcome.local_id = str_of(done.local_id);
	sscanf(done.verb, "%15s %15s", verb, name);
	replica_executed(it->replica, done.task, &done.outcome, now());
	if (done.outcome.kind == REPLICA_ACCEPTED)
		cross_children_named(it->children, done.id, str_of(name), now());
	cross_children_note(it->children, done.id);
}

/* Returns the ticket. */
uint64_t ask(uint32_t at, const struct user *wish)
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

uint64_t make(uint32_t at, const char *name)
{
	struct user user = {.wants = MAKES, .child = make_id()};
	snprintf(user.name, sizeof(user.name), "%s", name);
	return ask(at, &user);
}

uint64_t make_at(uint32_t at, const char *name, uint32_t holders)
{
	struct user user = {.wants = MAKES, .child = make_id(), .holders = holders};
	snprintf(user.name, sizeof(user.name), "%s", name);
	return ask(at, &user);
}

uint64_t change(uint32_t at, struct replica_id child, const char *name)
{
	struct user user = {.wants = name ? RENAMES : DELETES, .child = child};
	snprintf(user.name, sizeof(user.name), "%s", name ? name : "");
	return ask(at, &user);
}

/* All that can happen by itself, for so long. */
void settle(uint64_t seconds)
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
			follow(i);
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

int setup(void **state)
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

int teardown(void **state)
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

void make_container(void)
{
	struct user user = {.wants = MAKES, .child = container, .name = "outer"};
	uint64_t ticket = ask(0, &user);
	settle(5);
	assert_true(users[ticket].accepted);
}
