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

static bool is_possible(const struct demo_attempt *attempt, unsigned sites_count)
{
	return attempt->sites <= sites_count && (attempt->sites_most == 0 || sites_count <= attempt->sites_most);
}

/* What is kept of an answer is its id, with which all of the sample application's begin. */
static void put_attempt(struct buf *out, const struct demo *demo, const struct demo_attempt *attempt)
{
	if (attempt->why != NULL)
		buf_printf(out, "\n# %s\n", attempt->why);
	if (attempt->setting != NULL)
		buf_printf(out, "%s\n", attempt->setting);
	if (attempt->keep != NULL)
		buf_printf(out, "%s=$(curl -s %s\"", attempt->keep, attempt->with);
	else
		buf_printf(out, "%scurl -sw '\\n' %s\"", attempt->before != NULL ? attempt->before : "",
		           attempt->with != NULL ? attempt->with : "");
	put_url(out, demo, attempt->site, DEMO_PORT_FRONTS + attempt->service);
	buf_printf(out, "%s\"", attempt->path);
	if (attempt->keep != NULL)
		buf_printf(out, " | sed 's/^{\"id\":\"\\([^\"]*\\)\".*/\\1/'); echo \"$%s\"", attempt->keep);
	if (attempt->after != NULL)
		buf_put(out, str_of(attempt->after));
	buf_put_char(out, '\n');
}

void demo_put_guide(struct buf *out, const struct demo *demo)
{
	put_sites(out, demo);
	for (const struct demo_attempt *attempt = demo_attempts; attempt->path != NULL; attempt++) {
		if (is_possible(attempt, demo->options.sites_count))
			put_attempt(out, demo, attempt);
	}
	if (demo->options.sites_count > 1)
		buf_printf(
			out,
			"\n# How the copies stand: cheops get --api 127.0.0.1:%u\n"
			"# What depends on what, and what would suffer if Site2 went away: cheops deps impact --site Site2 --api "
			"127.0.0.1:%u\n",
			demo_port(demo, 0, DEMO_PORT_API), demo_port(demo, 0, DEMO_PORT_API));
}
