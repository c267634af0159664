/* The world in which a scope is looked at. */
#include "cli/cmd_scope.h"

/* "; did you mean `x`?", or some of the names that there are. */
static int unknown(const struct scope_call *call, const char *option, struct str name, struct buf *names,
                   const struct suggest *suggest)
{
	char meant[TEXT_SUGGESTION_BYTES];
	text_did_you_mean(suggest, meant);
	cli_say("--%s " TEXT_NAME_FMT " is not in %s%s%s", option, TEXT_NAME(name), call->view_path, meant,
	        *meant != '\0' ? "" : buf_c(names));
	buf_free(names);
	return CLI_USAGE;
}

static void list_name(struct buf *names, uint32_t index, struct str name)
{
	enum { NAMES_SHOWN = 8 };
	if (index < NAMES_SHOWN)
		buf_printf(names, "%s%.*s%s", index == 0 ? "; there are: " : ", ", STR_FMT(text_shown(name)),
		           text_ellipsis(name));
	else if (index == NAMES_SHOWN)
		buf_put(names, STR(", ..."));
}

static int unknown_at(const struct scope_call *call, const struct scope_view *view)
{
	struct buf names = {0};
	struct suggest suggest;
	suggest_start(&suggest, call->at);
	for (uint32_t i = 0; i < view->sites_count; i++) {
		struct str name = view->site(view->context, i).name;
		suggest_offer(&suggest, name);
		list_name(&names, i, name);
	}
	return unknown(call, "at", call->at, &names, &suggest);
}

static int unknown_service(const struct scope_call *call, const struct scope_view *view)
{
	struct buf names = {0};
	struct suggest suggest;
	suggest_start(&suggest, call->service);
	for (uint32_t i = 0; i < view->services_count; i++) {
		struct str name = view->service(view->context, i);
		suggest_offer(&suggest, name);
		list_name(&names, i, name);
	}
	return unknown(call, "service", call->service, &names, &suggest);
}

/* --view was given. */
static int from_file(const struct scope_call *call, struct scope_world *world)
{
	struct scope_view view = scope_table_view(call->table);
	*world = (struct scope_world){.view = view};
	if (call->at.length > 0)
		world->at = view.find_site(view.context, call->at);
	if (world->at == SCOPE_NO_INDEX)
		return unknown_at(call, &view);
	/* A view that knows of no service at all says nothing about this one. */
	if (call->service.length > 0 && view.services_count > 0 &&
	    view.find_service(view.context, call->service) == SCOPE_NO_INDEX)
		return unknown_service(call, &view);
	return CLI_FINE;
}

/* --view was not given: the named sites are there, and nothing else is known. */
static int from_names(struct scope_call *call, const struct scope *scope, struct scope_world *world)
{
	struct scope_table *table = scope_table_new(&call->arena);
	if (call->at.length > 0)
		scope_table_add_site(table, (struct scope_site){.name = call->at});
	for (uint32_t i = 0; i < scope_named_count(scope); i++)
		scope_table_add_site(table, (struct scope_site){.name = scope_named_site(scope, i)});
	*world = (struct scope_world){.view = scope_table_view(table)};
	if (world->view.sites_count == 0) {
		cli_say(
			"the scope names no site, so its plan depends on which there are: give --view FILE, or at least --at SITE");
		return CLI_USAGE;
	}
	if (scope_needs_view(scope))
		world->warning = STR("only the sites that are named are known; with --view FILE the plan may have others");
	return CLI_FINE;
}

int scope_world_make(struct scope_call *call, const struct scope *scope, struct scope_world *world)
{
	return call->table != NULL ? from_file(call, world) : from_names(call, scope, world);
}
