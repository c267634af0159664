/* The ownership checker: (description, scope, request) with verdicts and reasons. */
#include "relation/relation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const char description[] =
	"format: 1\n"
	"application: cloud\n"
	"services: {compute: , image: , network: , storage: , meter: }\n"
	"types:\n"
	"  compute.server:\n"
	"    collection: /servers\n"
	"    item: /servers/{id}\n"
	"    references:\n"
	"      body:\n"
	"        /image: {type: image.image, kind: requirement}\n"
	"        /network: network.network\n"
	"        /nets/*/id: network.network\n"
	"        /disk: storage.disk\n"
	"        /peer: compute.host\n"
	"        /any: '*'\n"
	"      query: {network: network.network, image: image.image}\n"
	"      path: {port: network.port}\n"
	"    operations:\n"
	"      attach: {method: PUT, path: '{item}/ports/{port}', effect: assign, body: none}\n"
	"      ports: {method: GET, path: '{item}/ports', effect: read, uses: network.port}\n"
	"      plug: {method: POST, path: '{item}/action', key: plug, effect: relative, references: {/plug/net: "
	"network.network}}\n"
	"      reboot: {method: POST, path: '{item}/action', key: reboot, effect: relative}\n"
	"      login: {method: POST, path: '{item}/login', effect: pass}\n"
	"  compute.host: {collection: /hosts, item: '/hosts/{id}', owner: site}\n"
	"  compute.cluster:\n"
	"    collection: /clusters\n"
	"    item: /clusters/{id}\n"
	"    references: {uses: [network.port, image.image]}\n"
	"  image.image: {collection: /images, item: '/images/{id}'}\n"
	"  network.network: {collection: /networks, item: '/networks/{id}', owner: site}\n"
	"  network.port: {collection: /ports, item: '/ports/{id}', owner: site, references: {body: {/network: "
	"network.network}}}\n"
	"  network.pool: {collection: /pools, item: '/pools/{id}'}\n"
	"  storage.disk: {collection: /disks, item: '/disks/{id}', owner: site, references: {body: {/image: "
	"image.image}}}\n";

struct row {
	const char *ask;   /* SERVICE METHOD TARGET */
	const char *body;  /* NULL: none */
	const char *scope; /* sent at Site1 */
	const char *said;  /* NULL: fine; "?": the body is needed; else the message */
};

#define SERVERS "compute POST /servers"
#define NETWORK "{\"image\": \"i\", \"network\": \"n\"}"
#define NONE "{\"name\": \"a\"}"
#define BAD_1_2 "server.create at Site1 expects Site1/network, but the scope gives Site2/network"
#define BAD_2_1 "server.create at Site2 expects Site2/network, but the scope gives Site1/network"

/* Round trips: Site1-Site2 5 ms, Site1-Site3 50 ms, Site2-Site3 8 ms, Site4 far from all. Site2 and Site3 have zone=b. */
static const struct row direct[] = {
	/* the example of the literature */
	{SERVERS, NETWORK, "{compute: Site1, network: Site2}", BAD_1_2},
	{SERVERS, NETWORK, "{compute: Site2, network: Site1}", BAD_2_1},
	{SERVERS, NETWORK, "{compute: Site2, network: Site3}",
     "server.create at Site2 expects Site2/network, but the scope gives Site3/network"},
	{SERVERS, NETWORK, "{Site2, network: Site1}", BAD_2_1},
	{SERVERS, NETWORK, "network: Site2", BAD_1_2},
	{SERVERS, NETWORK, "{\"compute\": \"Site1\", \"network\": \"Site2\"}", BAD_1_2},
	/* what makes sense */
	{SERVERS, NETWORK, "{compute: Site1, image: Site2}", NULL},
	{SERVERS, NETWORK, "{compute: Site1, network: Site1}", NULL},
	{SERVERS, NETWORK, "{compute: Site2, network: Site2}", NULL},
	{SERVERS, NETWORK, "{compute: Site2, image: Site1, network: Site2}", NULL},
	{SERVERS, NETWORK, "Site2", NULL},
	{SERVERS, NETWORK, "image: Site2 & Site3", NULL},
	/* what is not used */
	{SERVERS, NONE, "{compute: Site1, network: Site2}", NULL},
	{SERVERS, "{\"network\": null}", "{compute: Site1, network: Site2}", NULL},
	{SERVERS, "{\"network\": false}", "{compute: Site1, network: Site2}", NULL},
	{SERVERS, "{\"network\": \"\"}", "{compute: Site1, network: Site2}", NULL},
	{SERVERS, "{\"deeper\": {\"network\": \"n\"}}", "{compute: Site1, network: Site2}", NULL},
	{SERVERS, "{\"any\": \"n\"}", "{compute: Site1, network: Site2}", NULL},
	{SERVERS, "no JSON", "{compute: Site1, network: Site2}", NULL},
	{SERVERS, "{\"network\": true}", "{compute: Site1, network: Site2}", BAD_1_2},
	{SERVERS, "{\"network\": 7}", "{compute: Site1, network: Site2}", BAD_1_2},
	{SERVERS, "{\"n\\u0065twork\": \"n\"}", "{compute: Site1, network: Site2}", BAD_1_2},
	{SERVERS, "{\"network\": \"n\", oops", "{compute: Site1, network: Site2}", BAD_1_2},
	{SERVERS, "{\"nets\": []}", "{compute: Site1, network: Site2}", NULL},
	{SERVERS, "{\"nets\": [{}, {\"id\": \"n\"}]}", "{compute: Site1, network: Site2}", BAD_1_2},
	{SERVERS, "?", "{compute: Site1, network: Site2}", "?"},
	{SERVERS, "?", "{compute: Site1, network: Site1}", NULL},
	{SERVERS, "?", "{compute: Site1, image: Site2}", NULL},
	/* of the same service it is where the operation is */
	{SERVERS, "{\"peer\": \"h\"}", "{compute: Site2, network: Site3}", NULL},
	{"network POST /ports", "{\"network\": \"n\"}", "{network: Site2, compute: Site3}", NULL},
	/* two of them, one wrong */
	{SERVERS, "{\"network\": \"n\", \"disk\": \"d\"}", "{compute: Site2, network: Site2, storage: Site3}",
     "server.create at Site2 expects Site2/storage, but the scope gives Site3/storage"},
	{SERVERS, "{\"network\": \"n\", \"disk\": \"d\"}", "{compute: Site2, network: Site2, storage: Site2}", NULL},
	/* copies, parts */
	{SERVERS, NETWORK, "{compute: Site1 & Site2, network: Site1 & Site2}", NULL},
	{SERVERS, NETWORK, "{compute: Site1, network: Site1 & Site2}", NULL},
	{SERVERS, NETWORK, "{compute: Site1 & Site2, image: Site1}", NULL},
	{SERVERS, NETWORK, "{compute: Site1 & Site2, network: Site1}", BAD_2_1},
	{SERVERS, NETWORK, "{compute: Site1 & Site2, network: Site2}", BAD_1_2},
	{SERVERS, NETWORK, "{compute: Site1 & Site3, network: Site1 & Site2}",
     "server.create at Site3 expects Site3/network, but the scope gives Site1/network and Site2/network"},
	{SERVERS, NETWORK, "{compute: Site1 % Site2, network: Site1 % Site2}", NULL},
	{SERVERS, NETWORK, "{compute: Site1 % Site2, network: Site1}", BAD_2_1},
	{SERVERS, NETWORK, "{compute: Site1 & Site2, network: all()}", NULL},
	{SERVERS, NETWORK, "{compute: all(), network: all()}", NULL},
	{SERVERS, NETWORK, "{compute: tagged(zone=b), network: tagged(zone=b)}", NULL},
	{SERVERS, NETWORK, "{compute: Site1, network: tagged(zone=b)}",
     "server.create at Site1 expects Site1/network, but the scope gives Site2/network and Site3/network"},
	/* choices: whatever may be taken has to be right */
	{SERVERS, NETWORK, "Site1; Site2", NULL},
	{SERVERS, NETWORK, "{compute: Site1; Site2, image: Site3}", NULL},
	{SERVERS, NETWORK, "{compute: Site1; Site2, network: Site1}", BAD_2_1},
	{SERVERS, NETWORK, "{compute: Site1 | Site2, network: Site2}", BAD_1_2},
	{SERVERS, NETWORK, "{compute: Site1, network: Site1; Site2}",
     "server.create at Site1 expects Site1/network, but the scope gives Site1/network or Site2/network"},
	{SERVERS, NETWORK, "{compute: Site1, network: Site2 | Site1}",
     "server.create at Site1 expects Site1/network, but the scope gives Site1/network or Site2/network"},
	{SERVERS, NETWORK, "{compute: Site1, network: Site1 & (Site2; Site3)}", NULL},
	{SERVERS, NETWORK, "{compute: Site1, network: Site2 & (Site1; Site3)}",
     "server.create at Site1 expects Site1/network, but the scope gives Site2/network and Site1/network and "
     "Site3/network"},
	/* as seen from where the operation runs */
	{SERVERS, NETWORK, "{compute: Site2, network: nearest(1)}", NULL},
	{SERVERS, NETWORK, "{compute: Site1 & Site3, network: nearest(1)}", NULL},
	{SERVERS, NETWORK, "{compute: Site3, network: nearest(2)}", NULL},
	{SERVERS, NETWORK, "{compute: Site1, network: around(Site1, 1ms)}", NULL},
	{SERVERS, NETWORK, "{compute: Site2, network: around(Site1, 1ms)}", BAD_2_1},
	{SERVERS, NETWORK, "{compute: Site1, network: around(Site1, 6ms)}",
     "server.create at Site1 expects Site1/network, but the scope gives Site1/network or Site2/network"},
	{SERVERS, NETWORK, "{compute: Site1, network: !Site1}",
     "server.create at Site1 expects Site1/network, but the scope gives Site2/network or Site3/network or "
     "Site4/network"},
	{SERVERS, NETWORK, "{compute: !Site1, image: Site1}", NULL},
	{SERVERS, NETWORK, "{compute: !Site1, network: Site2}",
     "server.create at Site3 expects Site3/network, but the scope gives Site2/network"},
	/* by path and query */
	{"compute PUT /servers/1/ports/7", NULL, "{compute: Site1, network: Site2}",
     "server.attach at Site1 expects Site1/network, but the scope gives Site2/network"},
	{"compute PUT /servers/1/ports/7", NULL, "{compute: Site1, image: Site2}", NULL},
	{"compute GET /servers?network=n", NULL, "{compute: Site1, network: Site2}",
     "server.list at Site1 expects Site1/network, but the scope gives Site2/network"},
	{"compute GET /servers?image=i", NULL, "{compute: Site1, image: Site2, network: Site2}", NULL},
	/* uses: of what changes something, and of a read that says so */
	{"compute POST /clusters", NONE, "{compute: Site1, network: Site2}",
     "cluster.create at Site1 expects Site1/network, but the scope gives Site2/network"},
	{"compute DELETE /clusters/1", NULL, "{compute: Site1, network: Site2}",
     "cluster.delete at Site1 expects Site1/network, but the scope gives Site2/network"},
	{"compute GET /clusters/1", NULL, "{compute: Site1, network: Site2}", NULL},
	{"compute POST /clusters", NONE, "{compute: Site1, image: Site2}", NULL},
	{"compute GET /servers/1/ports", NULL, "{compute: Site1, network: Site2}",
     "server.ports at Site1 expects Site1/network, but the scope gives Site2/network"},
	/* reads, and what the description says is none of our business */
	{"compute GET /servers/1", NULL, "{compute: Site1, network: Site2}", NULL},
	{"compute DELETE /servers/1", NULL, "{compute: Site1, network: Site2}", NULL},
	{"compute POST /servers/1/login", NETWORK, "{compute: Site1, network: Site2}", NULL},
	/* the body says which operation it is */
	{"compute POST /servers/1/action", "?", "{compute: Site1, network: Site2}", "?"},
	{"compute POST /servers/1/action", "?", "{compute: Site1, network: Site1}", NULL},
	{"compute POST /servers/1/action", "{\"reboot\": {}}", "{compute: Site1, network: Site2}", NULL},
	{"compute POST /servers/1/action", "{\"plug\": {\"net\": \"n\"}}", "{compute: Site1, network: Site2}",
     "server.plug at Site1 expects Site1/network, but the scope gives Site2/network"},
	{"compute POST /servers/1/action", "{\"other\": {\"net\": \"n\"}}", "{compute: Site1, network: Site2}", NULL},
	/* sent to what belongs to a site: it runs there as a whole */
	{"network GET /networks", NULL, "Site2", NULL},
	{"network POST /networks", NONE, "Site2", NULL},
	{"network POST /networks", NONE, "Site1 & Site2", NULL},
	{"network GET /networks", NULL, "{compute: Site1, network: Site2}", NULL},
	{"network POST /pools", NONE, "Site2", NULL},
	{"storage POST /disks", "{\"image\": \"i\"}", "{storage: Site2, image: Site1}", NULL},
};

/* Calls that a service at Site1 makes. */
static const struct row inner[] = {
	{"network POST /ports", NONE, "{compute: Site1, network: Site2}",
     "port.create, called by compute at Site1, expects Site1/network, but the scope gives Site2/network"},
	{"network GET /networks/n", NULL, "{compute: Site1, network: Site2}",
     "network.read, called by compute at Site1, expects Site1/network, but the scope gives Site2/network"},
	{"network POST /ports", NONE, "{compute: Site1, network: Site1; Site2}",
     "port.create, called by compute at Site1, expects Site1/network, but the scope gives Site1/network or "
     "Site2/network"},
	{"network POST /ports", NONE, "{compute: Site1, network: Site1}", NULL},
	{"network POST /ports", NONE, "{compute: Site1, network: Site1 & Site2}", NULL},
	{"network POST /ports", NONE, "{compute: Site1, image: Site2}", NULL},
	{"network POST /ports", NONE, "{compute: Site1, network: nearest(1)}", NULL},
	{"network POST /pools", NONE, "{compute: Site1, network: Site2}", NULL},
	{"image GET /images/i", NULL, "{compute: Site1, image: Site2}", NULL},
	{"storage POST /disks", NONE, "{compute: Site1, storage: Site2}",
     "disk.create, called by compute at Site1, expects Site1/storage, but the scope gives Site2/storage"},
	/* and what it uses further on */
	{"compute POST /clusters", NONE, "{meter: Site1, compute: Site1, network: Site2}",
     "cluster.create, called by compute at Site1, expects Site1/network, but the scope gives Site2/network"},
};

static struct glue *read_description(void)
{
	struct glue *glue = NULL;
	struct err err = {0};
	struct glue_options options = {.path = "cloud.yaml", .hash_key = {1, 2}};
	if (glue_read(&glue, str_of(description), &options, &err) != 0)
		fail_msg("%s", err.text);
	return glue;
}

static struct scope_table *make_table(struct arena *arena)
{
	static const char *const names[] = {"Site1", "Site2", "Site3", "Site4"};
	static const char *const services[] = {"compute", "image", "network", "storage", "meter"};
	struct scope_table *table = scope_table_new(arena);
	for (int i = 0; i < 4; i++)
		scope_table_add_site(table, (struct scope_site){.name = str_of(names[i])});
	for (uint32_t i = 0; i < 5; i++) {
		scope_table_add_service(table, str_of(services[i]));
		for (uint32_t site = 0; site < 4; site++)
			scope_table_offer(table, i, site, STR(""));
	}
	scope_table_set_rtt(table, 0, 1, 5000);
	scope_table_set_rtt(table, 0, 2, 50000);
	scope_table_set_rtt(table, 1, 2, 8000);
	for (uint32_t site = 0; site < 3; site++)
		scope_table_set_rtt(table, site, 3, 300000);
	scope_table_tag(table, 1, STR("zone"), STR("b"));
	scope_table_tag(table, 2, STR("zone"), STR("b"));
	return table;
}

/* SERVICE METHOD TARGET */
static struct glue_request request_of(const char *ask)
{
	const char *method = strchr(ask, ' ') + 1, *target = strchr(method, ' ') + 1, *query = strchr(target, '?');
	return (struct glue_request){
		.service = str_make(ask, (size_t)(method - 1 - ask)),
		.method = str_make(method, (size_t)(target - 1 - method)),
		.path = str_make(target, query != NULL ? (size_t)(query - target) : strlen(target)),
		.query = query != NULL ? str_of(query + 1) : STR(""),
		.content_type = STR("application/json"),
	};
}

static void check_row(const struct row *row, bool is_inner)
{
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	struct glue *glue = read_description();
	struct glue_match match;
	struct glue_request request = request_of(row->ask);
	struct relation_refusal refusal = {0};
	arena_init(&arena, 0);
	struct scope_view view = scope_table_view(make_table(&arena));
	struct scope_request asked = {.service = request.service, .at = 0, .inner = is_inner};
	const struct scope_plan *plan = NULL;
	if (scope_parse(&arena, str_of(row->scope), &scope, &diag) != 0 || scope_check(&arena, scope, &diag) != 0 ||
	    scope_evaluate(&arena, scope, &asked, &view, &plan, &diag) != 0)
		fail_msg("%s: %s", row->scope, diag.message);
	assert_true(glue_match(glue, &request, &match));
	bool unknown = row->body != NULL && strcmp(row->body, "?") == 0;
	struct str body = row->body != NULL ? str_of(row->body) : STR("");
	struct relation_question question = {
		.glue = glue,
		.match = &match,
		.request = &request,
		.scope = scope,
		.plan = plan,
		.view = &view,
		.inner = is_inner,
		.caller = is_inner ? STR("compute") : STR(""),
		.has_body = row->body != NULL,
		.body = row->body != NULL && !unknown ? &body : NULL,
	};
	enum relation_verdict verdict = relation_check_owner(&arena, &question, &refusal);
	enum relation_verdict expected = row->said == NULL             ? RELATION_FINE
	                                 : strcmp(row->said, "?") == 0 ? RELATION_ASK_BODY
	                                                               : RELATION_REFUSED;
	if (verdict != expected)
		fail_msg("%s %s with %s: verdict %d, not %d; %s", row->ask, row->body, row->scope, (int)verdict, (int)expected,
		         refusal.message);
	if (expected == RELATION_REFUSED) {
		assert_string_equal(refusal.message, row->said);
		assert_non_null(strstr(refusal.hint, " belongs to its site"));
		assert_true(refusal.site.length > 0 && refusal.service.length > 0 && refusal.type.length > 0);
	}
	glue_free(glue);
	arena_free(&arena);
}

static void direct_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(direct) / sizeof(direct[0]); i++)
		check_row(&direct[i], false);
}

static void calls_of_a_service(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++)
		check_row(&inner[i], true);
}

/* The table is the specification: it may grow, and not shrink. */
static void the_table_is_long_enough(void **state)
{
	(void)state;
	assert_true(sizeof(direct) / sizeof(direct[0]) + sizeof(inner) / sizeof(inner[0]) >= 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(direct_requests),
		cmocka_unit_test(calls_of_a_service),
		cmocka_unit_test(the_table_is_long_enough),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
