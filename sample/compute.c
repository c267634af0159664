/* The compute service: servers that boot from an image, and what is around them. compute.h says what is where. */
#include "compute.h"

#include "memory.h"
#include "project.h"
#include "server.h"
#include "stack.h"
#include "vm.h"
#include "volume.h"

static void stop(void *context)
{
	struct compute *compute = context;
	store_close(compute->servers);
	store_close(compute->volumes);
	store_close(compute->stacks);
	store_close(compute->projects);
	pthread_mutex_destroy(&compute->building);
	free(compute);
}

static void *start(const char *data, const char *site)
{
	(void)site;
	struct compute *compute = NEW(struct compute);
	pthread_mutex_init(&compute->building, NULL);
	compute->projects = store_open(data, "projects");
	compute->stacks = store_open(data, "stacks");
	compute->volumes = store_open(data, "volumes");
	compute->servers = store_open(data, "servers");
	if (compute->projects != NULL && compute->stacks != NULL && compute->volumes != NULL && compute->servers != NULL)
		return compute;
	stop(compute);
	return NULL;
}

/* What can be in a project is also reached below it. */
#define IN_PROJECT(of_method, of_pattern, of_body, with)                                                               \
	{                                                                                                                  \
		.method = (of_method), .pattern = (of_pattern), .in_project = true, .body = (of_body), .handle = (with)        \
	}

static const struct route routes[] = {
	IN_PROJECT("GET", "/servers", ROUTE_NO_BODY, vm_list),
	IN_PROJECT("POST", "/servers", ROUTE_JSON, vm_create),
	IN_PROJECT("GET", "/servers/{id}", ROUTE_NO_BODY, vm_get),
	IN_PROJECT("DELETE", "/servers/{id}", ROUTE_NO_BODY, vm_delete),
	IN_PROJECT("POST", "/servers/{id}/action", ROUTE_JSON, vm_action),
	IN_PROJECT("GET", "/volumes", ROUTE_NO_BODY, volume_list),
	IN_PROJECT("POST", "/volumes", ROUTE_JSON, volume_create),
	IN_PROJECT("GET", "/volumes/{id}", ROUTE_NO_BODY, volume_get),
	IN_PROJECT("PUT", "/volumes/{id}", ROUTE_JSON, volume_put),
	IN_PROJECT("PATCH", "/volumes/{id}", ROUTE_PATCH, volume_patch),
	IN_PROJECT("DELETE", "/volumes/{id}", ROUTE_NO_BODY, volume_delete),
	IN_PROJECT("POST", "/volumes/{id}/attach", ROUTE_JSON, volume_attach),
	IN_PROJECT("POST", "/volumes/{id}/detach", ROUTE_NO_BODY, volume_detach),
	IN_PROJECT("GET", "/stacks", ROUTE_NO_BODY, stack_list),
	IN_PROJECT("POST", "/stacks", ROUTE_JSON, stack_create),
	IN_PROJECT("GET", "/stacks/{id}", ROUTE_NO_BODY, stack_get),
	IN_PROJECT("PATCH", "/stacks/{id}", ROUTE_PATCH, stack_patch),
	IN_PROJECT("DELETE", "/stacks/{id}", ROUTE_NO_BODY, stack_delete),
	{.method = "GET", .pattern = "/projects", .handle = project_list},
	{.method = "POST", .pattern = "/projects", .body = ROUTE_JSON, .handle = project_create},
	{.method = "GET", .pattern = "/projects/{id}", .handle = project_get},
	{.method = "PUT", .pattern = "/projects/{id}", .body = ROUTE_JSON, .handle = project_put},
	{.method = "PATCH", .pattern = "/projects/{id}", .body = ROUTE_PATCH, .handle = project_patch},
	{.method = "DELETE", .pattern = "/projects/{id}", .handle = project_delete},
	{.pattern = NULL},
};

const struct service compute_service = {.name = "compute", .routes = routes, .start = start, .stop = stop};
