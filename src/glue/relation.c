/* What the description says of several sites, of relations, and of whose a resource is. */
#include "glue/glue_int.h"

#include "base/check.h"

const char *glue_strategy_name(enum glue_strategy strategy)
{
	static const char *const names[GLUE_STRATEGIES] = {
		[GLUE_NO_CROSS] = "none",
		[GLUE_CONTAINER] = "container",
		[GLUE_DIVISIBLE] = "divisible",
		[GLUE_INDIVISIBLE] = "indivisible",
	};
	CHECK(strategy < GLUE_STRATEGIES);
	return names[strategy];
}

const char *glue_combine_name(enum glue_combine combine)
{
	static const char *const names[GLUE_COMBINES] = {
		[GLUE_SUM] = "sum", [GLUE_UNION] = "union", [GLUE_CONCAT] = "concat",
		[GLUE_MIN] = "min", [GLUE_MAX] = "max",     [GLUE_PRIME] = "prime",
	};
	CHECK(combine < GLUE_COMBINES);
	return names[combine];
}

const char *glue_kind_name(enum glue_kind kind)
{
	static const char *const names[GLUE_KINDS] = {
		[GLUE_UNRELATED] = "none",          [GLUE_REQUIREMENT] = "requirement", [GLUE_RELIANCE] = "reliance",
		[GLUE_COMPOSITION] = "composition", [GLUE_CONTAINED] = "container",
	};
	CHECK(kind < GLUE_KINDS);
	return names[kind];
}

struct str glue_type_service(const struct glue_type *type)
{
	return type->service_name;
}

enum glue_owner glue_type_owner(const struct glue_type *type)
{
	return type->owner;
}

enum glue_relied glue_type_relied(const struct glue_type *type)
{
	return type->relied;
}

bool glue_type_may_be_relied(const struct glue_type *type)
{
	return type->may_be_relied;
}

const struct glue_cross *glue_type_cross(const struct glue_type *type)
{
	return &type->cross;
}

uint32_t glue_relations_count(const struct glue_operation *operation)
{
	return operation->relations_count;
}

const struct glue_relation *glue_relation_at(const struct glue_operation *operation, uint32_t index)
{
	CHECK(index < operation->relations_count);
	return &operation->relations[index];
}

const struct str *glue_operation_divide(const struct glue_operation *operation, uint32_t *count)
{
	*count = operation->divide.count;
	return operation->divide.at;
}

struct str glue_operation_object(const struct glue_operation *operation)
{
	return operation->object;
}
