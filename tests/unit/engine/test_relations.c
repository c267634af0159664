/* Who refers to whom: from operations that have run here, found from both ends, before and after a restart. */
#include "life.h"

#include "engine/relations.h"
#include "replica/replica_int.h"

#include <stdio.h>

static const char description[] =
	"format: 1\n"
	"application: cloud\n"
	"services: {compute: , image: }\n"
	"types:\n"
	"  compute.project: {collection: /projects, item: '/projects/{id}', cross: container}\n"
	"  compute.server:\n"
	"    collection: [/servers, '/projects/{project}/servers']\n"
	"    item: ['/servers/{id}', '/projects/{project}/servers/{id}']\n"
	"    references:\n"
	"      body:\n"
	"        /image: {type: image.image, kind: requirement}\n"
	"        /secret: {type: image.secret, kind: reliance}\n"
	"        /logo: image.image\n"
	"      path: {project: {type: compute.project, kind: container}}\n"
	"  image.image: {collection: /images, item: '/images/{id}'}\n"
	"  image.secret: {collection: /secrets, item: '/secrets/{id}'}\n";

struct world {
	struct life life;
	struct glue *glue;
	struct setup setup;
};

static void begin(struct world *world)
{
	struct err err = {0};
	struct glue_options options = {.path = "app.yaml", .hash_key = {1, 2}};
	life_new(&world->life);
	life_begin(&world->life);
	if (glue_read(&world->glue, str_of(description), &options, &err) != 0)
		fail_msg("%s", err.text);
	world->setup = (struct setup){.about.glue = world->glue, .references = 1};
	world->life.engine.setup = &world->setup;
}

static void restart(struct world *world)
{
	life_crash(&world->life);
	life_begin(&world->life);
	world->life.engine.setup = &world->setup;
}

static void end(struct world *world)
{
	world->life.engine.setup = NULL;
	life_crash(&world->life);
	life_remove(&world->life);
	glue_free(world->glue);
}

static struct replica_id id_of(uint8_t number)
{
	return replica_id_make(1700000000000 + number, number, number);
}

/* METHOD TARGET, as it travels. */
static void ran(struct world *world, uint8_t from, uint8_t effect, const char *request, const char *body)
{
	char head[256];
	snprintf(head, sizeof(head), "%s\nContent-Type: application/json\r\n", request);
	struct run run = {.engine = &world->life.engine, .setup = &world->setup};
	run.task.kind = REPLICA_RUN;
	run.task.op.replicant = id_of(from);
	run.task.service = STR("compute");
	run.task.type = STR("compute.server");
	run.task.collection = STR("/servers");
	run.own = (struct engine_name){.service = STR("compute"), .type = STR("compute.server")};
	run.class.effect = effect;
	run.request.head = str_of(head);
	run.request.body = str_of(body);
	engine_relations_ran(&run);
}

static bool count_one(void *context, const struct engine_referrer *referrer)
{
	(void)referrer;
	(*(int *)context)++;
	return true;
}

static int referrers(struct world *world, const char *service, const char *type, const char *id, enum glue_kind kind)
{
	int count = 0;
	struct engine_local name = {{str_of(service), str_of(type), STR(""), str_of(id)}, LIFE_SELF};
	assert_true(engine_referrers_local(&world->life.engine, &name, 1U << kind, count_one, &count));
	return count;
}

static int relying_on(struct world *world, const char *secret)
{
	return referrers(world, "image", "image.secret", secret, GLUE_RELIANCE);
}

static void what_ran_last_counts(void **state)
{
	(void)state;
	struct world world;
	begin(&world);
	ran(&world, 1, ORDER_CREATE, "POST /servers", "{\"image\": \"i\", \"secret\": \"a\", \"logo\": \"i\"}");
	ran(&world, 2, ORDER_CREATE, "POST /servers", "{\"secret\": \"a\"}");
	assert_int_equal(relying_on(&world, "a"), 0); /* it is not committed */
	assert_int_equal(engine_commit(&world.life.engine), 0);
	assert_int_equal(relying_on(&world, "a"), 2);
	assert_int_equal(referrers(&world, "image", "image.image", "i", GLUE_REQUIREMENT), 1);
	assert_int_equal(referrers(&world, "image", "image.image", "i", GLUE_RELIANCE), 0);
	ran(&world, 1, ORDER_ASSIGN, "PATCH /servers/x", "{\"name\": \"n\"}");
	ran(&world, 2, ORDER_ASSIGN, "PATCH /servers/x", "{\"secret\": \"b\"}");
	assert_int_equal(engine_commit(&world.life.engine), 0);
	assert_int_equal(relying_on(&world, "a"), 1);
	assert_int_equal(relying_on(&world, "b"), 1);
	ran(&world, 2, ORDER_REPLACE, "PUT /servers/x", "{\"name\": \"n\"}");
	assert_int_equal(engine_commit(&world.life.engine), 0);
	assert_int_equal(relying_on(&world, "b"), 0);
	ran(&world, 1, ORDER_DELETE, "DELETE /servers/x", "");
	assert_int_equal(engine_commit(&world.life.engine), 0);
	assert_int_equal(relying_on(&world, "a"), 0);
	assert_int_equal(referrers(&world, "image", "image.image", "i", GLUE_REQUIREMENT), 0);
	end(&world);
}

/* Some are in the store, some in the journal alone, some of those in the store were taken back since. */
static void it_survives_a_restart(void **state)
{
	(void)state;
	struct world world;
	begin(&world);
	ran(&world, 1, ORDER_CREATE, "POST /servers", "{\"secret\": \"a\"}");
	ran(&world, 2, ORDER_CREATE, "POST /servers", "{\"secret\": \"a\"}");
	assert_int_equal(engine_commit(&world.life.engine), 0);
	restart(&world);
	assert_int_equal(relying_on(&world, "a"), 2);
	ran(&world, 3, ORDER_CREATE, "POST /servers", "{\"secret\": \"a\"}");
	ran(&world, 1, ORDER_DELETE, "DELETE /servers/x", "");
	assert_int_equal(engine_commit(&world.life.engine), 0);
	assert_int_equal(relying_on(&world, "a"), 2);
	ran(&world, 2, ORDER_DELETE, "DELETE /servers/x", ""); /* not committed: it is to be run again */
	restart(&world);
	assert_int_equal(relying_on(&world, "a"), 2);
	end(&world);
}

static void what_is_managed_is_known_by_its_meta_id(void **state)
{
	(void)state;
	struct world world;
	struct buf body = {0};
	int count = 0;
	begin(&world);
	buf_put(&body, STR("{\"secret\": \""));
	replica_id_put(id_of(9), &body);
	buf_put(&body, STR("\"}"));
	ran(&world, 1, ORDER_CREATE, "POST /servers", buf_c(&body));
	struct relation_target target = {.managed = true, .id = id_of(9)};
	assert_true(engine_relations_to(&world.life.engine, &target, 0, UINT32_MAX, count_one, &count));
	assert_int_equal(count, 1); /* here at once, for others when it is committed */
	assert_int_equal(engine_commit(&world.life.engine), 0);
	assert_true(engine_referrers(&world.life.engine, id_of(9), 1U << GLUE_RELIANCE, count_one, &count));
	assert_int_equal(count, 2);
	struct arena arena;
	struct relation_record record;
	arena_init(&arena, 0);
	assert_true(engine_refers(&world.life.engine, id_of(1), &arena, &record));
	assert_int_equal(record.count, 1);
	assert_true(relation_target_equal(&record.facts[0].to, &target));
	assert_false(engine_refers(&world.life.engine, id_of(2), &arena, &record));
	arena_free(&arena);
	buf_free(&body);
	end(&world);
}

/* As src/replica puts it, up to where this is read. */
static void put_row(struct world *world, uint8_t id, uint8_t kind, const char *collection, const uint8_t *becomes)
{
	struct replica_id key = id_of(id), other = id_of(becomes ? *becomes : 0);
	struct buf row = {0};
	put_number(&row, REPLICA_ROW_VERSION, 1);
	put_number(&row, kind, 1);
	if (kind == REPLICANT_ALIAS) {
		buf_put(&row, str_make((const char *)other.bytes, sizeof(other.bytes)));
		put_number(&row, LIFE_SELF, 8);
		buf_put(&row, str_make((const char *)key.bytes, sizeof(key.bytes)));
		put_number(&row, LIFE_SELF, 8);
		put_number(&row, 1, 4);
	} else {
		put_number(&row, 0, 8);
		put_number(&row, 0, 1);
		put_text(&row, STR("compute"));
		put_text(&row, STR("compute.server"));
		put_text(&row, str_of(collection));
		put_text(&row, STR(""));
	}
	engine_row_put(&world->life.engine, REPLICA_REPLICANTS, str_make((const char *)key.bytes, sizeof(key.bytes)),
	               buf_str(&row));
	buf_free(&row);
}

static int contents(struct world *world, uint8_t container)
{
	int count = 0;
	struct relation_target target = {.managed = true, .id = id_of(container)};
	assert_true(engine_relations_to(&world->life.engine, &target, 0, 1U << GLUE_CONTAINED, count_one, &count));
	return count;
}

static void a_container_is_in_the_path(void **state)
{
	(void)state;
	struct world world;
	struct buf collection = {0};
	const uint8_t winner = 8;
	begin(&world);
	buf_put(&collection, STR("/projects/"));
	replica_id_put(id_of(9), &collection);
	buf_put(&collection, STR("/servers"));
	put_row(&world, 1, REPLICANT_LIVE, buf_c(&collection), NULL);
	put_row(&world, 2, REPLICANT_LIVE, buf_c(&collection), NULL);
	put_row(&world, 3, REPLICANT_LIVE, "/servers", NULL);
	put_row(&world, 9, REPLICANT_LIVE, "/projects", NULL);
	assert_int_equal(contents(&world, 9), 2);
	/* Whatever its body says, that stays. */
	ran(&world, 1, ORDER_REPLACE, "PUT /servers/x", "{\"secret\": \"a\"}");
	put_row(&world, 2, REPLICANT_GONE, buf_c(&collection), NULL);
	assert_int_equal(contents(&world, 9), 1);
	/* The container turns out to be the same as another. */
	put_row(&world, 9, REPLICANT_ALIAS, "", &winner);
	assert_int_equal(contents(&world, 9), 0);
	assert_int_equal(contents(&world, 8), 1);
	assert_int_equal(engine_commit(&world.life.engine), 0);
	assert_int_equal(relying_on(&world, "a"), 1);
	put_row(&world, 1, REPLICANT_LEFT, buf_c(&collection), NULL);
	assert_int_equal(contents(&world, 8), 0);
	buf_free(&collection);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ran_last_counts),
		cmocka_unit_test(it_survives_a_restart),
		cmocka_unit_test(what_is_managed_is_known_by_its_meta_id),
		cmocka_unit_test(a_container_is_in_the_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
