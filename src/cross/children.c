/* children.h says how it works. The row of a child, in CROSS_CHILDREN under its meta-id: version (1), the container (16), the site that made it (8), flags (1: 1 this site
 * claims its name), then three texts (a byte for the length, and the bytes): its type, the name that it has ("": it is not made yet), the name that it is to have ("": none). */
#include "cross/children_int.h"

#include "base/arena.h"
#include "base/check.h"

#include <stdlib.h>

/* ---- Rows --------------------------------------------------------------------------------------------------------------- */

bool child_parse(struct str row, struct child *child)
{
	struct reader reader = reader_of(row);
	uint8_t version = read_8(&reader);
	struct str container = read_bytes(&reader, sizeof(child->container.bytes));
	if (container.length == sizeof(child->container.bytes))
		memcpy(child->container.bytes, container.at, container.length);
	child->maker = read_64(&reader);
	child->claimed = read_8(&reader) & CHILD_CLAIMED;
	child->type = read_bytes(&reader, read_8(&reader));
	child->name = read_bytes(&reader, read_8(&reader));
	child->next = read_bytes(&reader, read_8(&reader));
	return version == CHILD_VERSION && !reader.failed && reader.left == 0;
}

bool child_get(struct cross_children *children, struct replica_id id, struct child *child)
{
	const struct cross_names_host *host = &children->host.names;
	buf_clear(&children->row);
	return host->get(host->context, CROSS_CHILDREN, names_id_str(&id), &children->row) == 0 &&
	       child_parse(buf_str(&children->row), child);
}

static void put_text(struct buf *out, struct str text)
{
	put_number(out, text.length, 1);
	buf_put(out, text);
}

/* The slices may be those of the row that was read. */
void child_put(struct cross_children *children, struct replica_id id, const struct child *child)
{
	const struct cross_names_host *host = &children->host.names;
	struct buf row = {0};
	put_number(&row, CHILD_VERSION, 1);
	buf_put(&row, names_id_str(&child->container));
	put_number(&row, child->maker, 8);
	put_number(&row, child->claimed ? CHILD_CLAIMED : 0, 1);
	put_text(&row, child->type);
	put_text(&row, child->name);
	put_text(&row, child->next);
	host->put(host->context, CROSS_CHILDREN, names_id_str(&id), buf_str(&row));
	buf_free(&row);
}

static void child_remove(struct cross_children *children, struct replica_id id)
{
	const struct cross_names_host *host = &children->host.names;
	host->remove(host->context, CROSS_CHILDREN, names_id_str(&id));
}

bool cross_children_has(struct cross_children *children, struct replica_id id)
{
	struct child child;
	return children->containers && child_get(children, id, &child);
}

struct cross_claim child_claim(const struct child *child, struct replica_id id, struct str name)
{
	return (struct cross_claim){.container = child->container, .type = child->type, .name = name, .child = id};
}

/* ---- What is pending ------------------------------------------------------------------------------------------------------ */

static struct pending **pending_find(struct cross_children *children, const struct replica_id *child, uint64_t ticket)
{
	struct pending **at = &children->pending;
	while (*at && (child ? !names_same((*at)->child, *child) : (*at)->ticket != ticket))
		at = &(*at)->next;
	return at;
}

static void pending_add(struct cross_children *children, struct replica_id child, uint64_t ticket)
{
	struct pending *it = calloc(1, sizeof(*it));
	CHECK(it != NULL);
	*it = (struct pending){children->pending, child, ticket};
	children->pending = it;
}

static void pending_end(struct pending **at)
{
	struct pending *it = *at;
	*at = it->next;
	free(it);
}

static bool is_pending(struct cross_children *children, struct replica_id child)
{
	return *pending_find(children, &child, 0) != NULL;
}

/* ---- What the replicant says ------------------------------------------------------------------------------------------------ */

enum state {
	STATE_ABSENT, /* there is none: never made, or deleted */
	STATE_MAKING, /* its create is under way, or in doubt */
	STATE_BUSY,   /* it is there, and something is under way, or in doubt */
	STATE_THERE,
};

static enum state state_of(const struct cross_children *children, const struct replica_view *view)
{
	if (view->deleted || view->left)
		return STATE_ABSENT;
	for (uint32_t i = 0; i < view->members_count; i++) {
		const struct replica_member_view *member = &view->members[i];
		if (member->site != children->self)
			continue;
		bool busy = view->busy || member->in_doubt > 0 || member->pending > 0;
		if (member->local_id.length == 0 && busy)
			return STATE_MAKING;
		return busy ? STATE_BUSY : STATE_THERE;
	}
	return STATE_ABSENT; /* this site is no member any more */
}

static enum state look(struct cross_children *children, struct replica_id id)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	int code = replica_look(children->replica, &arena, id, &view);
	/* A store that cannot be read says nothing: the batch is given up anyway. */
	enum state state = code == 0 ? state_of(children, &view) : code == ERR_NOT_FOUND ? STATE_ABSENT : STATE_MAKING;
	arena_free(&arena);
	return state;
}

/* ---- What names asks ---------------------------------------------------------------------------------------------------------- */

/* Has its create, or its renaming, come to an end by itself? Then the row says so afterwards. */
static enum cross_fate settle(struct cross_children *children, struct replica_id id, struct child *child)
{
	enum state state = is_pending(children, id) ? STATE_MAKING : look(children, id);
	if (state == STATE_MAKING)
		return CROSS_UNKNOWN;
	if (state == STATE_ABSENT) {
		cross_children_note(children, id); /* the name that it has is to be released as well */
		return CROSS_ABSENT;
	}
	if (child->next.length == 0)
		return CROSS_EXISTS;
	if (child->name.length > 0 && state == STATE_BUSY)
		return CROSS_UNKNOWN;
	/* What makes it was accepted. A renaming that was would have been told: cross_children_named(). */
	bool made = child->name.length == 0;
	if (made)
		child->name = child->next;
	child->next = STR("");
	child_put(children, id, child);
	return made ? CROSS_EXISTS : CROSS_ABSENT;
}

static enum cross_fate fate(void *context, const struct cross_claim *claim)
{
	struct cross_children *children = context;
	struct child child;
	if (!child_get(children, claim->child, &child) || !child.claimed)
		return CROSS_ABSENT;
	bool next = str_equal(child.next, claim->name);
	if (!next && !str_equal(child.name, claim->name))
		return CROSS_ABSENT;
	if (next)
		return settle(children, claim->child, &child);
	switch (look(children, claim->child)) {
	case STATE_ABSENT: return CROSS_ABSENT;
	case STATE_MAKING: return CROSS_UNKNOWN;
	case STATE_BUSY:
	case STATE_THERE: break;
	}
	return CROSS_EXISTS;
}

/* A name that was not granted is none that it is to have. */
static void hear_answer(void *context, const struct cross_answer *answer)
{
	struct cross_children *children = context;
	struct pending **at = pending_find(children, NULL, answer->ticket);
	struct child child;
	if (*at && answer->code != 0) {
		struct replica_id id = (*at)->child;
		pending_end(at);
		cross_children_note(children, id); /* it may have been deleted meanwhile */
		if (child_get(children, id, &child) && child.name.length > 0) {
			child.next = STR("");
			child_put(children, id, &child);
		} else {
			child_remove(children, id);
		}
	}
	children->host.names.answer(children->host.names.context, answer);
}

static int host_get(void *context, enum cross_table table, struct str key, struct buf *row)
{
	struct cross_children *children = context;
	return children->host.names.get(children->host.names.context, table, key, row);
}

static void host_put(void *context, enum cross_table table, struct str key, struct str row)
{
	struct cross_children *children = context;
	children->host.names.put(children->host.names.context, table, key, row);
}

static void host_remove(void *context, enum cross_table table, struct str key)
{
	struct cross_children *children = context;
	children->host.names.remove(children->host.names.context, table, key);
}

static int host_scan(void *context, enum cross_table table, struct str prefix,
                     bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	struct cross_children *children = context;
	return children->host.names.scan(children->host.names.context, table, prefix, each, each_context);
}

static void host_send(void *context, site_id to, struct str message)
{
	struct cross_children *children = context;
	children->host.names.send(children->host.names.context, to, message);
}

static void host_lost(void *context, const struct cross_lost *lost)
{
	struct cross_children *children = context;
	children->host.names.lost(children->host.names.context, lost);
}

static uint64_t host_draw(void *context)
{
	struct cross_children *children = context;
	return children->host.names.draw(children->host.names.context);
}

static bool host_has_claimed(void *context, struct replica_id container, const struct cross_container *list)
{
	return heirs_have_claimed(context, container, list);
}

/* ---- Containers ----------------------------------------------------------------------------------------------------------------- */

bool list_has(const struct cross_container *list, site_id site)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->sites[i].site == site)
			return true;
	return false;
}

/* It was removed from the mesh, or has left the container. Of who is not known as a member nothing follows: its coming may not have been heard of. */
static bool is_gone(struct cross_children *children, struct replica_id id, site_id site)
{
	return children->host.is_removed(children->host.names.context, site) ||
	       replica_has_left(children->replica, id, site);
}

/* The next list, if it is this site's to make: the first one of those that are left makes it. With the prime gone, that is the next prime. */
static bool drop_gone(struct cross_children *children, struct replica_id id, struct cross_container *list)
{
	site_id gone[LIMIT_REPLICA_MEMBERS], first = 0;
	uint32_t count = 0;
	if (!cross_names_get(children->names, id, list) || !list_has(list, children->self))
		return false;
	for (uint32_t i = 0; i < list->count; i++) {
		if (list->sites[i].site != children->self && is_gone(children, id, list->sites[i].site))
			gone[count++] = list->sites[i].site;
		else if (first == 0)
			first = list->sites[i].site;
	}
	if (first != children->self)
		return false;
	for (uint32_t i = 0; i < count; i++)
		cross_container_drop(list, gone[i], NULL);
	return true;
}

/* Told once, whoever came or went: nobody hears of a list in between. */
static void set_list(struct cross_children *children, struct replica_id id, const struct cross_container *list)
{
	struct cross_container known;
	if (!cross_names_get(children->names, id, &known) || known.term < list->term)
		cross_names_set(children->names, id, list, children->now);
	heirs_claim(children, id);
}

static void drop_removed(struct cross_children *children, struct replica_id id)
{
	struct cross_container list;
	if (drop_gone(children, id, &list))
		set_list(children, id, &list);
}

void cross_children_follow(struct cross_children *children, const struct replica_view *container,
                           struct replica_now now)
{
	struct cross_container list;
	children->now = now;
	if (!drop_gone(children, container->id, &list))
		return;
	for (uint32_t i = 0; i < container->members_count; i++) {
		const struct replica_member_view *member = &container->members[i];
		if (!list_has(&list, member->site) && !member->leaving && !member->joining)
			cross_container_add(&list, member->site, NULL);
	}
	set_list(children, container->id, &list);
}

bool cross_children_may_leave(struct cross_children *children, const struct replica_view *container,
                              struct replica_now now)
{
	struct cross_container list;
	cross_children_follow(children, container, now);
	/* Whoever is being added is told its first list by the prime: nobody else could. */
	bool prime = cross_names_get(children->names, container->id, &list) && list.sites[0].site == children->self;
	for (uint32_t i = 0; prime && i < container->members_count; i++)
		if (!container->members[i].leaving && !list_has(&list, container->members[i].site))
			return false;
	return cross_names_may_leave(children->names, container->id, now);
}

/* The first list is the same wherever it is made: of what the container was made with, the prime first, the others by their ids. Who came later
 * is told a later one. */
static void learn(struct cross_children *children, const struct replica_view *view)
{
	struct cross_container list;
	struct replica_origin origin;
	children->containers = true;
	if (cross_names_get(children->names, view->id, &list) ||
	    replica_origin(children->replica, view->id, &origin) != 0 || !origin.here)
		return;
	cross_container_make(&list, origin.members, origin.members_count,
	                     children->host.optimistic(children->host.names.context, view));
	cross_names_set(children->names, view->id, &list, children->now);
	drop_removed(children, view->id);
}

static bool collect_container(void *context, struct replica_id id, const struct cross_container *list)
{
	(void)list;
	buf_put(context, names_id_str(&id));
	return true;
}

static bool next_id(struct reader *reader, struct replica_id *id)
{
	struct str bytes = read_bytes(reader, sizeof(id->bytes));
	if (bytes.length == sizeof(id->bytes))
		memcpy(id->bytes, bytes.at, bytes.length);
	return !reader->failed;
}

static void drop_removed_everywhere(struct cross_children *children)
{
	struct buf ids = {0};
	struct replica_id id;
	cross_names_containers(children->names, collect_container, &ids);
	for (struct reader reader = reader_of(buf_str(&ids)); reader.left > 0 && next_id(&reader, &id);)
		drop_removed(children, id);
	children->containers |= ids.length > 0;
	buf_free(&ids);
}

void cross_children_site_removed(struct cross_children *children, site_id site, struct replica_now now)
{
	children->now = now;
	cross_names_site_removed(children->names, site, now);
	drop_removed_everywhere(children);
}

/* A site that came later knows the container as a replicant, and has no list of it: that of a site which is one of its members is the first. */
static bool is_first_list(struct cross_children *children, site_id from, struct str message,
                          struct cross_container *list, struct replica_id *id)
{
	struct message head;
	struct reader rest;
	struct arena arena;
	struct replica_view view;
	struct cross_container known;
	if (names_message_open(message, &head, &rest) != 0 || head.kind != MESSAGE_LIST)
		return false;
	*list = (struct cross_container){.term = head.term};
	*id = head.container;
	if (cross_names_get(children->names, *id, &known) || !container_read(&rest, list) || rest.left > 0 ||
	    !list_has(list, from) || !list_has(list, children->self))
		return false;
	arena_init(&arena, 0);
	bool member = false;
	bool here = replica_look(children->replica, &arena, *id, &view) == 0 && view.span == REPLICA_CONTAINER &&
	            !view.deleted && !view.left;
	for (uint32_t i = 0; here && i < view.members_count; i++)
		member |= view.members[i].site == from;
	arena_free(&arena);
	return member;
}

void cross_children_receive(struct cross_children *children, site_id from, struct str message, struct replica_now now)
{
	struct cross_container list;
	struct replica_id id;
	children->now = now;
	struct message head;
	struct reader rest;
	if (names_message_open(message, &head, &rest) == 0 && is_gone(children, head.container, from))
		return; /* it may not have heard of that, and think that it is the prime */
	if (is_first_list(children, from, message, &list, &id)) {
		children->containers = true;
		cross_names_set(children->names, id, &list, now);
	}
	cross_names_receive(children->names, from, message, now);
	if (head.kind == MESSAGE_LIST) {
		drop_removed(children,
		             head.container); /* of whoever in it is known here to be gone nothing else may tell any more */
		heirs_claim(children, head.container);
	}
}

/* ---- Reviews -------------------------------------------------------------------------------------------------------------------- */

void cross_children_note(struct cross_children *children, struct replica_id id)
{
	size_t bytes = sizeof(id.bytes), length = children->noted.length;
	/* Most that comes at a time is of one. */
	if (length < bytes || memcmp(children->noted.at + length - bytes, id.bytes, bytes) != 0)
		buf_put(&children->noted, names_id_str(&id));
}

void cross_children_event(struct cross_children *children, const struct replica_event *event)
{
	if (children->containers || event->kind == REPLICA_EVENT_REPLICANT)
		cross_children_note(children, event->op.replicant);
}

static void release_all(struct cross_children *children, struct replica_id id, const struct child *child)
{
	struct cross_claim has = child_claim(child, id, child->name), wants = child_claim(child, id, child->next);
	struct buf kept = children->row; /* the slices are of it */
	children->row = (struct buf){0};
	if (child->name.length > 0)
		cross_names_release(children->names, &has, children->now);
	if (child->next.length > 0)
		cross_names_release(children->names, &wants, children->now);
	child_remove(children, id);
	buf_free(&kept);
}

static void review_child(struct cross_children *children, struct replica_id id, enum state state)
{
	struct child child;
	if (!child_get(children, id, &child) || is_pending(children, id))
		return;
	if (!child.claimed) {
		if (state == STATE_ABSENT)
			child_remove(children, id);
		else
			heirs_claim_one(children, id);
		return;
	}
	if (state == STATE_ABSENT) {
		release_all(children, id, &child);
		return;
	}
	if (child.next.length == 0)
		return;
	struct buf kept = children->row;
	children->row = (struct buf){0};
	struct cross_claim wants = child_claim(&child, id, child.next);
	switch (settle(children, id, &child)) {
	case CROSS_EXISTS: cross_names_kept(children->names, &wants, children->now); break;
	case CROSS_ABSENT: cross_names_release(children->names, &wants, children->now); break;
	case CROSS_UNKNOWN: break;
	}
	buf_free(&kept);
}

static void review(struct cross_children *children, struct replica_id id)
{
	struct arena arena;
	struct replica_view view;
	struct cross_container list;
	arena_init(&arena, 0);
	int code = replica_look(children->replica, &arena, id, &view);
	bool there = code == 0 && names_same(view.id, id);
	enum state state = there ? state_of(children, &view) : STATE_ABSENT;
	if (code != 0 && code != ERR_NOT_FOUND)
		state = STATE_MAKING;
	if (there && view.span == REPLICA_CONTAINER && state != STATE_ABSENT)
		learn(children, &view);
	else if (state == STATE_ABSENT && cross_names_get(children->names, id, &list))
		heirs_forget(children, id);
	if (there && state != STATE_ABSENT)
		heirs_learn(children, &view);
	if (children->containers)
		review_child(children, id, state);
	arena_free(&arena);
}

void cross_children_review(struct cross_children *children, struct replica_now now)
{
	children->now = now;
	while (children->noted.length > 0) {
		struct buf noted = children->noted;
		struct replica_id id;
		children->noted = (struct buf){0};
		for (struct reader reader = reader_of(buf_str(&noted)); reader.left > 0 && next_id(&reader, &id);)
			review(children, id);
		buf_free(&noted);
	}
}

/* ---- Wishes --------------------------------------------------------------------------------------------------------------------- */

/* The collection that it is in names its container by the meta-id. */
static bool container_in(const struct cross_children *children, struct str collection, struct replica_id *id)
{
	struct cross_container list;
	while (collection.length > 0) {
		const char *slash = memchr(collection.at, '/', collection.length);
		size_t length = slash ? (size_t)(slash - collection.at) : collection.length;
		if (replica_id_parse(str_make(collection.at, length), id) && cross_names_get(children->names, *id, &list))
			return true;
		length += slash != NULL;
		collection = str_make(collection.at + length, collection.length - length);
	}
	return false;
}

bool cross_children_container(struct cross_children *children, struct replica_id child, struct replica_id *container)
{
	struct arena arena;
	struct replica_view view;
	struct child row;
	if (!children->containers)
		return false;
	if (child_get(children, child, &row)) {
		*container = row.container;
		return true;
	}
	arena_init(&arena, 0);
	bool found = replica_look(children->replica, &arena, child, &view) == 0 && view.span == REPLICA_PLACED &&
	             container_in(children, view.collection, container);
	arena_free(&arena);
	return found;
}

/* What is not the child of this site, by its rows. 1: nobody need be asked; 0: its name may be claimed, whatever it was. */
static int check_foreign(struct cross_children *children, const struct cross_wish *wish, struct child *child,
                         site_id *at, struct err *err)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool ours = replica_look(children->replica, &arena, wish->child, &view) == 0 && view.span == REPLICA_PLACED &&
	            !view.deleted && container_in(children, view.collection, &child->container);
	*at = ours ? view.prime : 0;
	arena_free(&arena);
	if (!ours)
		return CROSS_NOTHING_TO_ASK;
	if (*at != children->self)
		return err_set(err, ERR_CONFLICT, "the name of a child is the business of the site that made it");
	struct child row;
	child->maker = child_get(children, wish->child, &row) ? row.maker : children->self;
	child->claimed = true;
	child->type = wish->type;
	child->name = child->next = STR("");
	return 0;
}

int cross_children_claim(struct cross_children *children, const struct cross_wish *wish, uint64_t ticket,
                         struct replica_now now, site_id *at, struct err *err)
{
	struct child child = {.container = wish->container,
	                      .maker = children->self,
	                      .claimed = true,
	                      .type = wish->type,
	                      .name = STR(""),
	                      .next = STR("")};
	children->now = now;
	*at = 0;
	if (!children->containers)
		return wish->creates ? err_set(err, ERR_NOT_FOUND, "the container is not at this site") : CROSS_NOTHING_TO_ASK;
	cross_children_review(children, now); /* this site may have left the container in this very batch */
	if (wish->creates && replica_is_leaving(children->replica, wish->container))
		return err_set(err, ERR_CONFLICT, "this site is being withdrawn from the container: ask another of its sites");
	bool known = !wish->creates && child_get(children, wish->child, &child) && child.claimed &&
	             (child.maker == children->self || heirs_is_prime(children, wish->child));
	int code = wish->creates || known ? 0 : check_foreign(children, wish, &child, at, err);
	if (code == 0 && !wish->creates && heirs_wait(children, wish->child))
		code =
			err_set(err, ERR_UNAVAILABLE, "the site that made it is gone, and its name is being taken over: try again");
	if (code != 0)
		return code;
	if (known && str_equal(child.name, wish->name) && child.next.length == 0)
		return CROSS_NOTHING_TO_ASK;
	if (child.next.length > 0)
		return err_set(err, ERR_UNAVAILABLE, "another change of its name is under way: try again");
	struct buf kept = children->row; /* the slices may be of it */
	children->row = (struct buf){0};
	struct str before = child.name;
	struct cross_claim claim = child_claim(&child, wish->child, wish->name);
	child.next = wish->name;
	child_put(children, wish->child, &child);
	pending_add(children, wish->child, ticket);
	code = cross_names_claim(children->names, &claim, before, ticket, now, err);
	if (code != 0) {
		pending_end(pending_find(children, &wish->child, 0));
		child.next = STR("");
		if (before.length > 0)
			child_put(children, wish->child, &child);
		else
			child_remove(children, wish->child);
	}
	buf_free(&kept);
	return code;
}

void cross_children_over(struct cross_children *children, struct replica_id child)
{
	struct pending **at = pending_find(children, &child, 0);
	if (*at)
		pending_end(at);
	cross_children_note(children, child);
}

void cross_children_named(struct cross_children *children, struct replica_id id, struct str name,
                          struct replica_now now)
{
	struct child child;
	children->now = now;
	if (!children->containers || name.length == 0 || !child_get(children, id, &child))
		return;
	if (!child.claimed || child.maker != children->self)
		heirs_named(children, id, name);
	if (!child_get(children, id, &child) || !child.claimed)
		return;
	struct buf kept = children->row;
	children->row = (struct buf){0};
	if (str_equal(child.next, name)) {
		struct cross_claim claim = child_claim(&child, id, child.next), had = child_claim(&child, id, child.name);
		child.name = child.next;
		child.next = STR("");
		child_put(children, id, &child);
		cross_names_kept(children->names, &claim, now);
		if (had.name.length > 0 && !str_equal(had.name, claim.name))
			cross_names_release(children->names, &had, now); /* it may have moved meanwhile (heirs.c) */
	}
	buf_free(&kept);
}

/* ---- Life, and a look --------------------------------------------------------------------------------------------------------------- */

int cross_children_look(struct cross_children *children, struct replica_id id, struct cross_claim_view *view)
{
	struct child child;
	struct claim_row row;
	if (!children->containers || !child_get(children, id, &child) || !child.claimed)
		return ERR_NOT_FOUND;
	struct str name = child.name.length > 0 ? child.name : child.next;
	*view = (struct cross_claim_view){.claim = child_claim(&child, id, name)};
	struct key key = key_of_claim(&view->claim);
	if (!names_get_claim(children->names, key_str(&key), &row))
		return ERR_NOT_FOUND;
	view->state = (enum cross_claim_state)row.state;
	view->unchecked = row.unchecked;
	view->settled = row.nonce != 0 || row.state == CROSS_LOST;
	view->stamp = row.stamp;
	view->holder = row.holder;
	view->holder_site = row.holder_site;
	return 0;
}

/* What was asked for when this site stopped is not any more, and nobody will say so. */
static bool note_unsettled(void *context, struct str key, struct str row)
{
	struct cross_children *children = context;
	struct child child;
	struct replica_id id;
	children->containers = true; /* there was one, also if it is forgotten: the child outlives it for a moment */
	if (key.length == sizeof(id.bytes) && child_parse(row, &child) && child.next.length > 0) {
		memcpy(id.bytes, key.at, sizeof(id.bytes));
		cross_children_note(children, id);
	}
	return true;
}

struct cross_names *cross_children_names(struct cross_children *children)
{
	return children->names;
}

int cross_children_new(struct cross_children **out, const struct cross_names_options *options, struct replica *replica,
                       const struct cross_children_host *host, struct replica_now now, struct err *err)
{
	struct cross_children *children = calloc(1, sizeof(*children));
	CHECK(children != NULL);
	children->replica = replica;
	children->host = *host;
	children->self = options->self;
	children->now = now;
	struct cross_names_host names = {.context = children,
	                                 .get = host_get,
	                                 .put = host_put,
	                                 .remove = host_remove,
	                                 .scan = host_scan,
	                                 .send = host_send,
	                                 .answer = hear_answer,
	                                 .lost = host_lost,
	                                 .fate = fate,
	                                 .draw = host_draw,
	                                 .has_claimed = host_has_claimed};
	int code = cross_names_new(&children->names, options, &names, now, err);
	if (code == 0 && host->names.scan(host->names.context, CROSS_CHILDREN, STR(""), note_unsettled, children) != 0)
		code = err_set(err, ERR_IO, "what is in containers cannot be read");
	if (code != 0) {
		cross_children_free(children);
		return code;
	}
	drop_removed_everywhere(children);
	*out = children;
	return 0;
}

void cross_children_free(struct cross_children *children)
{
	if (children->names)
		cross_names_free(children->names);
	while (children->pending)
		pending_end(&children->pending);
	buf_free(&children->noted);
	buf_free(&children->row);
	free(children);
}
