/* Every bound of the product, in one place. A bound that a user can meet is named in the error that it causes. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

enum {
	/* what a person is shown */
	LIMIT_NAME_SHOWN_BYTES = 48,   /* of a name inside a message; the rest becomes an ellipsis */
	LIMIT_PATH_SHOWN_BYTES = 96,   /* of a file's path; its beginning becomes an ellipsis */
	LIMIT_SUGGEST_NAME_BYTES = 64, /* longer names get no "did you mean" */
	LIMIT_ERROR_TEXT_BYTES = 320,  /* one message, one hint */

	/* logging */
	LIMIT_LOG_LINE_BYTES = 4096,

	/* YAML files: libyaml takes quadratic time on the first two */
	LIMIT_YAML_NESTING = 16,    /* our formats need 5; the rest is for a clearer complaint than "too deep" */
	LIMIT_YAML_ANCHORS = 1000,  /* with `&` */
	LIMIT_YAML_ENTRY_BYTES = 4, /* an entry takes at least `a: ` and a newline: a file has no more than that many */
};

#endif
