/* A child that several sites hold, and the site that made it is gone: its name passes to those that are left.
 *
 *   while the maker is there   each other site of the container keeps a row of it; one that holds it, with the name that its own service accepted last. Nobody but the maker claims
 *   the list is without it     whoever holds the child claims its name, as soon as it has carried out all that it knows of the child; and is not ready in that
 *                              term before the prime has answered for it (has_claimed()). The prime keeps the entries of a site that is gone until all are ready
 *                              (names_prime.c), or, a new one, grants nothing before
 *
 * So there is no moment in which the name of a child that one of them holds is free; and that of a child which nobody holds is, when all have been there. All of them claim, as nobody
 * can know for certain which of the others have it: to the prime it is one child, and the entry is the first one's. When that goes too all say so again.
 *
 * What goes wrong:
 *   - anybody crashes: rows say what was claimed. The claim is in the same commit as the row
 *   - it has not carried out the create yet, or a change of the name: it waits for its service, and so do new primes. A request that was refused is over, and waits for nobody
 *   - it has not even heard of the child, and somebody else has: whoever knows of it is not ready before it knows that those which are to hold it have carried it out
 *   - a change of the name comes later, from a site that had heard of it: what is claimed moves with it
 *   - the maker had renamed or deleted it, was told so to nobody, and somebody else has the name since: the child that is left has lost its name, and is marked so.
 *     Therefore it is claimed as unchecked: whoever was granted the name keeps it
 */
#include "cross/children_int.h"

#include "base/arena.h"

/* Its replicant, if it is a child of which this site has a copy, or is to have one. */
static const struct replica_member_view *look_at_own(struct cross_children *children, struct arena *arena,
                                                     struct replica_id id, struct replica_view *view)
{
	if (replica_look(children->replica, arena, id, view) != 0 || view->span != REPLICA_PLACED || view->deleted ||
	    view->left || !names_same(view->id, id))
		return NULL;
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == children->self)
			return view->members[i].witness ? NULL : &view->members[i];
	return NULL;
}

/* What the segment of a collection names: a container; or nothing that is known here, which may turn out to be one. */
static bool may_be_container(struct cross_children *children, struct replica_id id, bool *known)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	int code = replica_look(children->replica, &arena, id, &view);
	*known = code == 0 && view.span == REPLICA_CONTAINER && !view.deleted && !view.left;
	arena_free(&arena);
	return *known || code == ERR_NOT_FOUND;
}

/* A site can hold a child before it has heard a list of the container, or anything of it. */
static bool find_container(struct cross_children *children, struct str collection, struct replica_id *id)
{
	bool found = false, known = false;
	while (collection.length > 0 && !known) {
		const char *slash = memchr(collection.at, '/', collection.length);
		size_t length = slash ? (size_t)(slash - collection.at) : collection.length;
		struct replica_id named;
		if (replica_id_parse(str_make(collection.at, length), &named) && may_be_container(children, named, &known) &&
		    (known || !found)) {
			*id = named;
			found = true;
		}
		length += slash != NULL;
		collection = str_make(collection.at + length, collection.length - length);
	}
	return found;
}

void heirs_learn(struct cross_children *children, const struct replica_view *view)
{
	struct child child = {.name = STR(""), .next = STR("")};
	struct replica_origin origin;
	if (view->span != REPLICA_PLACED || child_get(children, view->id, &child) ||
	    replica_origin(children->replica, view->id, &origin) != 0 || origin.members_count == 0 ||
	    origin.members[0] == children->self || view->type.length > LIMIT_REPLICA_NAME_BYTES ||
	    !find_container(children, view->collection, &child.container))
		return;
	child.maker = origin.members[0];
	child.type = view->type;
	child.name = child.next = STR("");
	children->containers = true; /* or what will be one: the row is to be looked after from now on */
	child_put(children, view->id, &child);
}

/* What is claimed already moves to the new name. That it was granted to whoever renamed it the prime knows: to it this is the same child. */
static void move(struct cross_children *children, struct replica_id id, struct child *child, struct str name)
{
	struct cross_claim had = child_claim(child, id, child->name), has = child_claim(child, id, name);
	struct buf kept = children->row; /* the slices are of it */
	children->row = (struct buf){0};
	cross_names_adopt(children->names, &has, children->now, NULL);
	if (had.name.length > 0)
		cross_names_release(children->names, &had, children->now);
	child->name = name;
	child_put(children, id, child);
	buf_free(&kept);
}

void heirs_named(struct cross_children *children, struct replica_id id, struct str name)
{
	struct child child;
	if (!child_get(children, id, &child) || name.length > LIMIT_REPLICA_NAME_BYTES || str_equal(child.name, name) ||
	    str_equal(child.next, name))
		return;
	if (child.claimed) {
		move(children, id, &child, name);
		return;
	}
	child.name = name;
	child_put(children, id, &child);
	cross_children_note(children, id);
}

/* As far as is known here: has it something to carry out? What was refused is over; what is stuck may be so for ever. */
static bool is_open(const struct replica_member_view *member)
{
	return (member->pending > 0 || member->in_doubt > 0) && !member->stuck && !member->diverged;
}

/* One that is to hold the child may not have heard of it: what is known here gets there, and it has claimed the name when it says that it has carried that out. */
static bool others_are_open(struct cross_children *children, struct replica_id id, const struct cross_container *list)
{
	struct arena arena;
	struct replica_view view;
	bool open = false;
	arena_init(&arena, 0);
	bool there = replica_look(children->replica, &arena, id, &view) == 0 && !view.deleted && !view.left;
	for (uint32_t i = 0; there && i < view.members_count; i++) {
		const struct replica_member_view *member = &view.members[i];
		open |= member->site != children->self && !member->witness && list_has(list, member->site) && is_open(member);
	}
	arena_free(&arena);
	return open;
}

enum duty { DUTY_NONE, DUTY_LATER, DUTY_NOW };

/* Has this site to claim it? */
static enum duty duty_of(struct cross_children *children, struct replica_id id, const struct child *child,
                         const struct cross_container *list)
{
	struct arena arena;
	struct replica_view view;
	enum duty duty = DUTY_NONE;
	if (child->claimed || list_has(list, child->maker) || !list_has(list, children->self))
		return DUTY_NONE;
	arena_init(&arena, 0);
	const struct replica_member_view *own = look_at_own(children, &arena, id, &view);
	if (own) {
		bool open = is_open(own) || (view.busy && !own->stuck && !own->diverged);
		duty = open ? DUTY_LATER : child->name.length > 0 ? DUTY_NOW : DUTY_NONE;
	}
	arena_free(&arena);
	return duty;
}

void heirs_claim_one(struct cross_children *children, struct replica_id id)
{
	struct child child;
	struct cross_container list;
	if (!child_get(children, id, &child) || !cross_names_get(children->names, child.container, &list) ||
	    duty_of(children, id, &child, &list) != DUTY_NOW)
		return;
	struct buf kept = children->row; /* the slices are of it */
	children->row = (struct buf){0};
	struct cross_claim claim = child_claim(&child, id, child.name);
	child.claimed = true;
	child_put(children, id, &child);
	cross_names_adopt(children->names, &claim, children->now, NULL);
	buf_free(&kept);
}

struct heirs {
	struct replica_id container;
	struct buf ids;
};

static bool collect(void *context, struct str key, struct str row)
{
	struct heirs *heirs = context;
	struct child child;
	if (key.length == sizeof(struct replica_id) && child_parse(row, &child) && !child.claimed &&
	    names_same(child.container, heirs->container))
		buf_put(&heirs->ids, key);
	return true;
}

/* The ids of those that this site knows and does not claim. */
static struct buf unclaimed(struct cross_children *children, struct replica_id container)
{
	const struct cross_names_host *host = &children->host.names;
	struct heirs heirs = {.container = container};
	if (children->containers)
		host->scan(host->context, CROSS_CHILDREN, STR(""), collect, &heirs);
	return heirs.ids;
}

static struct replica_id id_at(const struct buf *ids, size_t at)
{
	struct replica_id id;
	memcpy(id.bytes, ids->at + at, sizeof(id.bytes));
	return id;
}

void heirs_claim(struct cross_children *children, struct replica_id container)
{
	struct buf ids = unclaimed(children, container);
	for (size_t at = 0; at < ids.length; at += sizeof(struct replica_id))
		heirs_claim_one(children, id_at(&ids, at));
	buf_free(&ids);
}

void heirs_forget(struct cross_children *children, struct replica_id container)
{
	const struct cross_names_host *host = &children->host.names;
	struct buf ids = unclaimed(children, container);
	cross_names_forget(children->names, container, children->now);
	for (size_t at = 0; at < ids.length; at += sizeof(struct replica_id)) {
		struct replica_id id = id_at(&ids, at);
		host->remove(host->context, CROSS_CHILDREN, names_id_str(&id));
	}
	buf_free(&ids);
}

bool heirs_have_claimed(struct cross_children *children, struct replica_id container,
                        const struct cross_container *list)
{
	struct buf ids = unclaimed(children, container);
	bool all = true;
	for (size_t at = 0; at < ids.length && all; at += sizeof(struct replica_id)) {
		struct child child;
		struct replica_id id = id_at(&ids, at);
		if (child_get(children, id, &child) && !list_has(list, child.maker))
			all = duty_of(children, id, &child, list) == DUTY_NONE && !others_are_open(children, id, list);
	}
	buf_free(&ids);
	return all;
}

bool heirs_wait(struct cross_children *children, struct replica_id id)
{
	struct child child;
	struct buf kept = children->row; /* the caller has slices of it */
	children->row = (struct buf){0};
	bool wait = child_get(children, id, &child) && !child.claimed;
	if (wait && child.name.length == 0) { /* it has none: unless it is being made, or renamed */
		struct arena arena;
		struct replica_view view;
		arena_init(&arena, 0);
		const struct replica_member_view *own = look_at_own(children, &arena, id, &view);
		wait = own && (view.busy || is_open(own));
		arena_free(&arena);
	}
	buf_free(&children->row);
	children->row = kept;
	return wait;
}

bool heirs_is_prime(struct cross_children *children, struct replica_id id)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool prime = look_at_own(children, &arena, id, &view) && view.prime == children->self;
	arena_free(&arena);
	return prime;
}
