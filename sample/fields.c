#include "fields.h"

#include <string.h>

#include "memory.h"

const char *field_text(const json_t *object, const char *name, size_t bytes_max, struct reply *refusal)
{
	const char *text = json_string_value(json_object_get(object, name));
	if (text != NULL && text[0] != '\0' && strlen(text) <= bytes_max)
		return text;
	*refusal = reply_error(400, "\"%s\" must be a string of 1 to %zu bytes", name, bytes_max);
	return NULL;
}

void merge_patch(json_t *target, json_t *patch)
{
	const char *name;
	json_t *value;
	json_object_foreach(patch, name, value)
	{
		if (json_is_null(value)) {
			json_object_del(target, name);
		} else if (!json_is_object(value)) {
			json_object_set(target, name, value);
		} else {
			/* Even where there was no object, so that the nulls inside the patch are left out of what is made. */
			if (!json_is_object(json_object_get(target, name)))
				json_object_set_new(target, name, need(json_object()));
			merge_patch(json_object_get(target, name), value);
		}
	}
}
