/* Methods and statuses. */
#include "http/http_int.h"

#include <llhttp/llhttp.h>

struct str http_method_name(uint8_t method)
{
	return str_of(llhttp_method_name((llhttp_method_t)method));
}

bool http_method_is_head(uint8_t method)
{
	return method == HTTP_HEAD;
}

bool http_method_is_safe(uint8_t method)
{
	return method == HTTP_GET || method == HTTP_HEAD || method == HTTP_OPTIONS || method == HTTP_TRACE;
}

unsigned http_bad_status(enum http_bad bad)
{
	static const uint16_t statuses[] = {
		[HTTP_OK] = 200,         [HTTP_BAD_SYNTAX] = 400,        [HTTP_BAD_FRAMING] = 400,     [HTTP_BAD_HOST] = 400,
		[HTTP_BAD_TARGET] = 400, [HTTP_BAD_TARGET_LENGTH] = 414, [HTTP_BAD_FIELDS_SIZE] = 431, [HTTP_BAD_VERSION] = 505,
		[HTTP_BAD_METHOD] = 501, [HTTP_BAD_CODING] = 501,        [HTTP_BAD_EXPECTATION] = 417,
	};
	return statuses[bad];
}

const char *http_reason(unsigned status)
{
	static const struct {
		uint16_t status;
		const char *reason;
	} reasons[] = {
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{203, "Non-Authoritative Information"},
		{204, "No Content"},
		{205, "Reset Content"},
		{206, "Partial Content"},
		{207, "Multi-Status"},
		{300, "Multiple Choices"},
		{301, "Moved Permanently"},
		{302, "Found"},
		{303, "See Other"},
		{304, "Not Modified"},
		{307, "Temporary Redirect"},
		{308, "Permanent Redirect"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{402, "Payment Required"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{411, "Length Required"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{416, "Range Not Satisfiable"},
		{417, "Expectation Failed"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{423, "Locked"},
		{424, "Failed Dependency"},
		{425, "Too Early"},
		{426, "Upgrade Required"},
		{428, "Precondition Required"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{451, "Unavailable For Legal Reasons"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
		{508, "Loop Detected"},
	};
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}
