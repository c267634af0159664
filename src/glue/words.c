#include "glue/glue.h"

#include "base/check.h"

const char *glue_effect_name(enum glue_effect effect)
{
	static const char *const names[GLUE_EFFECTS] = {
		[GLUE_READ] = "read",     [GLUE_LIST] = "list",         [GLUE_CREATE] = "create", [GLUE_REPLACE] = "replace",
		[GLUE_ASSIGN] = "assign", [GLUE_RELATIVE] = "relative", [GLUE_DELETE] = "delete", [GLUE_PASS] = "pass",
	};
	CHECK(effect < GLUE_EFFECTS);
	return names[effect];
}

const char *glue_resolution_name(enum glue_resolution resolution)
{
	static const char *const names[GLUE_RESOLUTIONS] = {
		[GLUE_TAKE_ONE] = "take-one",
		[GLUE_ANY_ORDER] = "any-order",
		[GLUE_KEEP_ORDER] = "keep-order",
		[GLUE_REVERSE_ORDER] = "reverse-order",
	};
	CHECK(resolution < GLUE_RESOLUTIONS);
	return names[resolution];
}
