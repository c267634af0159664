/* What is in a container is known at all of its sites, also when these change.
 *
 * A site comes to a container, or leaves it, as with any replica (src/replica/members.c). What follows from that is not part of that request: it is found by comparing, and
 * done by whoever can, so that it is carried out whoever crashes meanwhile, and for a child of which nobody but its site had heard when the container was extended:
 *   the prime of the names      makes the next list: with a site that has its copy of the container, without one that has left it; once the prime itself has, the next one does
 *   the prime of a child        lets a site of the container know of the child that does not yet, and withdraws it where the container is no more
 *                             and deletes it when the container is deleted (orphans.c)
 * What is divided is followed in the same way (parts.c).
 * Looked at are replicants of which something has changed, a little later; and all of this site's containers at a start. What could not be done yet is tried again.
 *
 * A container is withdrawn only from a site that holds none of its children. Whoever is asked refuses what it knows of (engine_follow_refuses()); the site itself, which is
 * marked as leaving then, takes no new ones (names.c), and goes when it has none (go_on_leaving()), and, if it is the prime of the names, all others have its list: then whoever
 * is next begins where it ended. */
#include "engine/engine_int.h"

#include "engine/relations.h"

enum { SOON_MS = 20, AGAIN_MS = 500, NOTED_MOST = 4096 };

static const struct replica_member_view *find_member(const struct replica_view *view, site_id site)
{
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == site)
			return &view->members[i];
	return NULL;
}

static bool look(struct engine *engine, struct arena *arena, struct replica_id id, struct replica_view *view)
{
	return replica_look(engine->replica, arena, id, view) == 0 && !view->deleted && !view->left;
}

/* ---- A child -------------------------------------------------------------------------------------------------------------- */

/* The container that it is in, as it is known here. */
static bool find_container(struct engine *engine, struct arena *arena, struct replica_id child,
                           struct replica_view *container)
{
	struct relation_record record;
	if (!engine_relations_from(engine, child, arena, &record))
		return false;
	for (uint32_t i = 0; i < record.count; i++)
		if (record.facts[i].kind == GLUE_CONTAINED && record.facts[i].to.managed &&
		    look(engine, arena, record.facts[i].to.id, container) && container->span == REPLICA_CONTAINER)
			return true;
	return false;
}

/* True: something is under way, or has to be tried again. */
static bool extend_child(struct engine *engine, const struct replica_view *child, site_id site)
{
	struct replica_extension extension = {.site = site, .ticket = ++engine->tickets_made};
	int code = replica_extend(engine->replica, child->id, &extension, engine_now(), NULL);
	return code == 0 || code == ERR_UNAVAILABLE;
}

static bool follow_child(struct engine *engine, const struct replica_view *child, const struct replica_view *container)
{
	bool left = false;
	if (child->span != REPLICA_PLACED || child->prime != engine->options.self)
		return false;
	for (uint32_t i = 0; i < container->members_count && !left; i++) {
		const struct replica_member_view *member = &container->members[i];
		if (!member->leaving && !member->joining && !find_member(child, member->site))
			left = extend_child(engine, child, member->site);
	}
	for (uint32_t i = 0; i < child->members_count; i++) {
		const struct replica_member_view *member = &child->members[i], *of = find_member(container, member->site);
		bool stays = of && !of->leaving;
		/* A copy of what lies here as well goes with the container; what lies here alone keeps the container here. */
		if (!stays && member->site != engine->options.self && !member->leaving)
			replica_drop(engine->replica, child->id, &(struct replica_drop){.site = member->site}, engine_now(), NULL);
	}
	return left;
}

/* ---- A container ---------------------------------------------------------------------------------------------------------- */

static bool collect(void *context, const struct engine_referrer *referrer)
{
	buf_put(context, str_make((const char *)referrer->from.bytes, sizeof(referrer->from.bytes)));
	return true;
}

static struct replica_id id_at(const struct buf *ids, size_t at)
{
	struct replica_id id;
	memcpy(id.bytes, ids->at + at, sizeof(id.bytes));
	return id;
}

static void children_of(struct engine *engine, struct replica_id container, struct buf *ids)
{
	struct relation_target target = {.managed = true, .id = container};
	engine_relations_to(engine, &target, engine->options.self, 1u << GLUE_CONTAINED, collect, ids);
}

static uint32_t held_at(struct engine *engine, struct replica_id container, site_id site, struct buf *text);

/* Is a copy being deleted here that this site is to hold no more? Till then the service may refuse to delete the container. */
static bool is_deleting(struct engine *engine, struct replica_id container)
{
	struct buf ids = {0};
	bool deleting = false;
	children_of(engine, container, &ids);
	for (size_t at = 0; at < ids.length && !deleting; at += sizeof(struct replica_id)) {
		struct arena arena;
		struct replica_view child;
		arena_init(&arena, 0);
		deleting = replica_look(engine->replica, &arena, id_at(&ids, at), &child) == 0 && child.left && child.busy;
		arena_free(&arena);
	}
	buf_free(&ids);
	return deleting;
}

/* This site knows best what it holds: what was made meanwhile stays, and so does the container. */
static void go_on_leaving(struct engine *engine, const struct replica_view *container)
{
	struct buf unused = {0};
	if (held_at(engine, container->id, engine->options.self, &unused) == 0 && !is_deleting(engine, container->id) &&
	    cross_children_may_leave(engine->children, container, engine_now()))
		replica_let_go(engine->replica, container->id, engine_now());
	buf_free(&unused);
}

static bool follow_container(struct engine *engine, const struct replica_view *container)
{
	struct buf ids = {0};
	bool left = false;
	cross_children_follow(engine->children, container, engine_now());
	if (replica_is_leaving(engine->replica, container->id)) {
		go_on_leaving(engine, container);
		left = replica_is_leaving(engine->replica, container->id);
	}
	children_of(engine, container->id, &ids);
	for (size_t at = 0; at < ids.length; at += sizeof(struct replica_id)) {
		struct arena arena;
		struct replica_view child;
		arena_init(&arena, 0);
		if (look(engine, &arena, id_at(&ids, at), &child))
			left |= follow_child(engine, &child, container);
		arena_free(&arena);
	}
	buf_free(&ids);
	return left;
}

/* ---- When ------------------------------------------------------------------------------------------------------------------ */

void engine_follow_note(struct engine *engine, struct replica_id id)
{
	if (engine->follow_ids.length < NOTED_MOST * sizeof(id.bytes))
		buf_put(&engine->follow_ids, str_make((const char *)id.bytes, sizeof(id.bytes)));
	else
		engine->follow_all = true;
}

static bool note_container(void *context, struct replica_id id, const struct cross_container *list)
{
	(void)list;
	buf_put(context, str_make((const char *)id.bytes, sizeof(id.bytes)));
	return true;
}

static bool follow_divided(struct engine *engine, const struct replica_view *view)
{
	engine_standing_learn(engine, view->id);
	return engine_parts_follow(engine, view);
}

static bool follow_one(struct engine *engine, struct replica_id id)
{
	struct arena arena;
	struct replica_view view, container;
	bool left = false;
	arena_init(&arena, 0);
	if (look(engine, &arena, id, &view)) {
		if (view.span == REPLICA_CONTAINER)
			left = follow_container(engine, &view);
		else if (view.span == REPLICA_DIVIDED)
			left = follow_divided(engine, &view);
		else if (view.span == REPLICA_PLACED && view.prime == engine->options.self)
			left = find_container(engine, &arena, id, &container) ? follow_child(engine, &view, &container)
			                                                      : engine_orphans_follow(engine, &arena, &view);
	} else {
		engine_orphans_note(engine, id);
		engine_division_forget(engine, id);
	}
	arena_free(&arena);
	return left;
}

void engine_follow_tick(struct http_timer *timer)
{
	struct engine *engine = (struct engine *)((char *)timer - offsetof(struct engine, follow_timer));
	struct buf ids = engine->follow_ids;
	engine->follow_timed = false;
	engine->follow_ids = (struct buf){0};
	if (engine->children && engine->follow_all) {
		cross_names_containers(cross_children_names(engine->children), note_container, &ids);
		engine_parts_note_all(engine, &ids);
		engine_orphans_note_all(engine, &ids);
	}
	engine->follow_all &= !engine->children;
	for (size_t at = 0; at < ids.length && engine->children; at += sizeof(struct replica_id)) {
		struct replica_id id = id_at(&ids, at);
		if (follow_one(engine, id)) {
			engine_follow_note(engine, id);
			engine->follow_again = true;
		}
	}
	buf_free(&ids);
	if (engine->replica)
		engine_changed(engine);
}

/* After a commit. What changes is looked at when it is durable. A timer that is set stays so: where commits follow each other without a
 * pause it would never be over. */
void engine_follow_timer(struct engine *engine)
{
	bool due = engine->follow_all || engine->follow_ids.length > 0;
	if (due && engine->children && !engine->follow_timed) {
		http_timer_set(engine->loop, &engine->follow_timer, engine->follow_again ? AGAIN_MS : SOON_MS);
		engine->follow_timed = true;
		engine->follow_again = false;
	}
}

/* ---- Withdrawing -------------------------------------------------------------------------------------------------------------- */

static struct str name_of(const struct engine *engine, site_id site)
{
	const struct site_place *place = engine_find_place(engine, site);
	return place ? place->name : STR("a site that is not known any more");
}

/* Those that the site holds, as far as is known here. */
static uint32_t held_at(struct engine *engine, struct replica_id container, site_id site, struct buf *text)
{
	enum { SHOWN = 5 };
	struct buf ids = {0};
	uint32_t count = 0;
	children_of(engine, container, &ids);
	for (size_t at = 0; at < ids.length; at += sizeof(struct replica_id)) {
		struct arena arena;
		struct replica_view child;
		arena_init(&arena, 0);
		const struct replica_member_view *member =
			look(engine, &arena, id_at(&ids, at), &child) ? find_member(&child, site) : NULL;
		if (member && !member->witness && count++ < SHOWN) {
			buf_put(text, count > 1 ? STR(", ") : STR(""));
			replica_id_put(child.id, text);
			if (child.name.length > 0)
				buf_printf(text, " (%.*s)", STR_FMT(utf8_truncate(child.name, LIMIT_NAME_SHOWN_BYTES)));
		}
		arena_free(&arena);
	}
	if (count > SHOWN)
		buf_printf(text, " and %u more", count - SHOWN);
	buf_free(&ids);
	return count;
}

static int refuse_container(struct engine *engine, const struct replica_view *view, site_id site, struct err *err)
{
	struct buf text = {0};
	struct str name = name_of(engine, site);
	int code = 0;
	if (held_at(engine, view->id, site, &text) > 0)
		code = err_set(err, ERR_CONFLICT, "%.*s holds what is in this container: %s; delete that first", STR_FMT(name),
		               buf_c(&text));
	buf_free(&text);
	return code;
}

int engine_follow_refuses(struct engine *engine, const struct engine_membership *change, struct err *err)
{
	struct arena arena;
	struct replica_view view, container;
	int code = 0;
	arena_init(&arena, 0);
	if (engine->children && look(engine, &arena, change->replicant, &view)) {
		bool contained = view.span == REPLICA_PLACED && find_container(engine, &arena, view.id, &container);
		if (view.span == REPLICA_CONTAINER && !change->adds)
			code = refuse_container(engine, &view, change->site, err);
		else if (contained && change->adds && change->hold)
			code = err_set(err, ERR_CONFLICT,
			               "it is in a container, and the site that made it has its name: it cannot be moved");
		else if (contained && !(change->adds && find_member(&container, change->site)))
			code =
				err_set(err, ERR_CONFLICT,
			            "it is in a container, and known at all sites of that: extend the container, or withdraw it");
	}
	arena_free(&arena);
	return code;
}
