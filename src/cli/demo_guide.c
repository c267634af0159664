/* What a demo prints once it is ready. The guide is a shell script: explanations are comments, so that it can be pasted
 * as a whole, piece by piece, or run (tests/e2e/demo does). */
#include "cli/demo.h"

static void put_url(struct buf *out, const struct demo *demo, unsigned site, unsigned offset)
{
	buf_printf(out, "http://127.0.0.1:%u", demo_port(demo, site, offset));
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void put_site_json(struct buf *out, const struct demo *demo, unsigned site)
{
	buf_printf(out, "%s{\"name\":\"Site%u\",\"api\":\"", site > 0 ? "," : "", site + 1);
	put_url(out, demo, site, DEMO_PORT_API);
	buf_put(out, STR("\",\"services\":{"));
	for (unsigned i = 0; i < DEMO_SERVICES; i++) {
		buf_printf(out, "%s\"%s\":\"", i > 0 ? "," : "", demo_part_names[i]);
		put_url(out, demo, site, DEMO_PORT_FRONTS + i);
		buf_put_char(out, '"');
	}
	buf_put(out, STR("}}"));
}

void demo_put_json(struct buf *out, const struct demo *demo)
{
	buf_put(out, STR("{\"sites\":["));
	for (unsigned site = 0; site < demo->options.sites_count; site++)
		put_site_json(out, demo, site);
	buf_put(out, STR("]}\n"));
}

/* ---- The guide -------------------------------------------------------------------------------------------------- */

/* A request to try. Scopes are carried by what `arguments` says; `path` may be all there is. */
struct attempt {
	const char *why;
	unsigned sites; /* that it takes */
	const char *arguments;
	enum demo_part service; /* of Site1 */
	const char *path;
};

static const struct attempt attempts[] = {
	{"A request without a scope stays at the site that it is sent to.", 1, "", DEMO_COMPUTE, "/whoami?via=image"},
	{"Boot a server at Site1 from that image: the scope says where each service is to be used.", 2,
     "-H 'Scope: {compute: Site1, image: Site2}' --json \"$server\" ", DEMO_COMPUTE, "/servers"},
	{"The same for clients that may set only headers that begin with X-.", 2,
     "-H 'X-Scope: {compute: Site1, image: Site2}' --json \"$server\" ", DEMO_COMPUTE, "/servers"},
	{"The same in the path, for clients that let one set nothing but an address.", 2, "--json \"$server\" ",
     DEMO_COMPUTE, "/scope/compute:%20Site1,%20image:%20Site2/servers"},
	{"The same as W3C baggage, which tracing libraries pass on.", 2,
     "-H 'baggage: cheops.scope=compute:Site1%2Cimage:Site2' --json \"$server\" ", DEMO_COMPUTE, "/servers"},
	{"The same in JSON.", 2, "-H 'Scope: {\"compute\": \"Site1\", \"image\": \"Site2\"}' --json \"$server\" ",
     DEMO_COMPUTE, "/servers"},
	{"A scope that names only image leaves compute where the request came in.", 2,
     "-H 'Scope: {image: Site2}' --json \"$server\" ", DEMO_COMPUTE, "/servers"},
	{"Without a scope there is no such image: Site1 does not have it.", 2, "--json \"$server\" ", DEMO_COMPUTE,
     "/servers"},
	{"Sent to Site1, runs at Site3; and from there image is Site3's.", 3, "-H 'Scope: {compute: Site3}' ", DEMO_COMPUTE,
     "/whoami?via=image"},
	{"Which image service does compute reach? That of Site2.", 2, "-H 'Scope: image/Site2' ", DEMO_COMPUTE,
     "/whoami?via=image"},
	{"A mistake in a scope is explained.", 1, "-H 'Scope: {image: Sit1}' ", DEMO_COMPUTE, "/servers"},
	{"What would be done, without doing it.", 1, "-H 'Scope: {compute: Site1}' -H 'Cheops-Explain: plan' ",
     DEMO_COMPUTE, "/servers"},
};

static void put_sites(struct buf *out, const struct demo *demo)
{
	unsigned count = demo->options.sites_count;
	buf_printf(out, "# %u site%s on this machine, each with an agent in front of three services:\n#\n", count,
	           count == 1 ? "" : "s");
	for (unsigned site = 0; site < count; site++) {
		buf_printf(out, "#   Site%-3u", site + 1);
		for (unsigned i = 0; i < DEMO_SERVICES; i++) {
			buf_printf(out, " %s ", demo_part_names[i]);
			put_url(out, demo, site, DEMO_PORT_FRONTS + i);
		}
		buf_put(out, STR(" API "));
		put_url(out, demo, site, DEMO_PORT_API);
		buf_put_char(out, '\n');
	}
	buf_put(out, STR("#\n# Logs, and what reaches each service, are in "));
	text_put_harmless(out, buf_str(&demo->dir));
	buf_put(out, STR("\n# Ctrl-C stops all of it. In another terminal, try:\n"));
}

static void put_image(struct buf *out, const struct demo *demo)
{
	buf_put(out, STR("\n# An image that exists only at Site2.\nimage=$(curl -s --json '{\"name\": \"debian\"}' "));
	put_url(out, demo, 1, DEMO_PORT_FRONTS + DEMO_IMAGE);
	buf_put(out, STR("/images | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/'); echo \"$image\"\n"
	                 "echo 'the bytes of an image' | curl -sw '\\n' -T - "));
	put_url(out, demo, 1, DEMO_PORT_FRONTS + DEMO_IMAGE);
	buf_put(out, STR("/images/$image/file\nserver=\"{\\\"name\\\": \\\"vm\\\", \\\"image\\\": \\\"$image\\\"}\"\n"));
}

/* Its name is another one each time: pools are known by theirs. */
static void put_pool(struct buf *out, const struct demo *demo)
{
	bool three = demo->options.sites_count > 2;
	buf_printf(out,
	           "\n# One resource at %s sites, from one request; it is answered once they have it, or after 10 s.\n"
	           "pool=$(curl -s -H 'Scope: Site1 & Site2%s' -H 'Prefer: wait=10' --json "
	           "\"{\\\"name\\\": \\\"shared $$\\\", \\\"size\\\": 23}\" ",
	           three ? "three" : "both", three ? " & Site3" : "");
	put_url(out, demo, 0, DEMO_PORT_FRONTS + DEMO_NETWORK);
	buf_put(out, STR("/pools | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/'); echo \"$pool\"\n"
	                 "\n# What is changed at Site2 is changed at Site1, too.\n"
	                 "curl -sw '\\n' -H 'Prefer: wait=10' --json '{\"by\": 6}' "));
	put_url(out, demo, 1, DEMO_PORT_FRONTS + DEMO_NETWORK);
	buf_put(out, STR("/pools/$pool/grow\ncurl -sw '\\n' "));
	put_url(out, demo, 0, DEMO_PORT_FRONTS + DEMO_NETWORK);
	buf_printf(out, "/pools/$pool\n\n# How its copies stand: cheops get --api 127.0.0.1:%u\n",
	           demo_port(demo, 0, DEMO_PORT_API));
}

void demo_put_guide(struct buf *out, const struct demo *demo)
{
	put_sites(out, demo);
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		const struct attempt *attempt = &attempts[i];
		if (attempt->sites > demo->options.sites_count)
			continue;
		buf_printf(out, "\n# %s\ncurl -sw '\\n' %s'", attempt->why, attempt->arguments);
		put_url(out, demo, 0, DEMO_PORT_FRONTS + attempt->service);
		buf_printf(out, "%s'\n", attempt->path);
		if (i == 0 && demo->options.sites_count > 1)
			put_image(out, demo);
	}
	if (demo->options.sites_count > 1)
		put_pool(out, demo);
}
