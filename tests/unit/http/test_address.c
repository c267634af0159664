/* Addresses as people write them, as sockets have them, and as sites tell them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static void parse(struct http_address *address, const char *text)
{
	struct err err = {0};
	if (http_address_parse(address, str_of(text), &err) != 0)
		fail_msg("%s: %s", text, err.text);
}

static void numbers_become_sockets(void **state)
{
	(void)state;
	struct http_address address;
	parse(&address, "192.0.2.7:8070");
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address.socket;
	assert_int_equal(four->sin_family, AF_INET);
	assert_int_equal(ntohs(four->sin_port), 8070);
	assert_int_equal(ntohl(four->sin_addr.s_addr), 0xc0000207);
	assert_int_equal(address.length, sizeof(*four));
	assert_string_equal(address.text, "192.0.2.7:8070");
	parse(&address, "[2001:db8::7]:1");
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address.socket;
	assert_int_equal(six->sin6_family, AF_INET6);
	assert_int_equal(ntohs(six->sin6_port), 1);
	assert_int_equal(six->sin6_addr.s6_addr[15], 7);
	assert_int_equal(address.length, sizeof(*six));
	assert_string_equal(address.text, "[2001:db8::7]:1");
}

static void names_are_looked_up_and_kept_as_they_are(void **state)
{
	(void)state;
	struct http_address address;
	parse(&address, "localhost:65535");
	assert_string_equal(address.text, "localhost:65535");
	assert_true(address.length > 0);
}

static void what_is_no_address_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *said;
	} cases[] = {
		{"", "`` is not an address; write host:port, as in 127.0.0.1:8080 or [::1]:8080"},
		{"8080", "`8080` is not an address; write host:port"},
		{":8080", "is not an address"},
		{"127.0.0.1", "is not an address"},
		{"127.0.0.1:", "is not an address"},
		{"::1:8080", "is not an address"},
		{"[::1]", "is not an address"},
		{"[]:8080", "is not an address"},
		{"[::1:8080", "is not an address"},
		{"127.0.0.1:x", "`x` is not a port; a port is a number from 1 to 65535"},
		{"127.0.0.1:-1", "`-1` is not a port"},
		{"127.0.0.1:+1", "`+1` is not a port"},
		{"127.0.0.1: 1", "` 1` is not a port"},
		{"127.0.0.1:0", "0 is not a port; a port is a number from 1 to 65535"},
		{"127.0.0.1:65536", "65536 is not a port"},
		{"127.0.0.1:00000000001", "is not an address"},
		{"no.such.name.invalid:80", "cannot look up `no.such.name.invalid`"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80", "is not an address"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_address address;
		struct err err = {0};
		assert_true(http_address_parse(&address, str_of(cases[i].text), &err) < 0);
		if (strstr(err.text, cases[i].said) == NULL)
			fail_msg("%s: `%s` does not say: %s", cases[i].text, err.text, cases[i].said);
		assert_int_equal(address.length, 0);
	}
}

/* Also one that was cut anywhere: never a part of a longer text. */
static void any_part_of_a_text_is_dealt_with(void **state)
{
	(void)state;
	static const char text[] = "[2001:db8::7]:8070";
	for (size_t length = 0; length < sizeof(text) - 1; length++) {
		struct http_address address;
		struct err err = {0};
		int code = http_address_parse(&address, str_make(text, length), &err);
		assert_true(code == 0 ? strlen(address.text) == length : err.text[0] != '\0');
	}
}

/* ---- Sites -------------------------------------------------------------------------------------------------------- */

static void a_site_is_met_where_it_says(void **state)
{
	(void)state;
	static const char *const texts[] = {"192.0.2.7:8070", "127.0.0.1:1", "[2001:db8::7]:65535",
	                                    "[::1]:80",       "0.0.0.0:9",   "[::]:9"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct http_address address, back;
		struct site_address site;
		parse(&address, texts[i]);
		assert_true(http_address_to_site(&address, &site));
		http_address_of_site(&back, &site);
		assert_string_equal(back.text, texts[i]);
		assert_int_equal(back.length, address.length);
		assert_memory_equal(&back.socket, &address.socket, address.length);
	}
}

/* What is told is a number: others need not know the name. */
static void a_name_is_told_as_a_number(void **state)
{
	(void)state;
	struct http_address address, back;
	struct site_address site;
	parse(&address, "localhost:8070");
	assert_true(http_address_to_site(&address, &site));
	http_address_of_site(&back, &site);
	assert_true(strcmp(back.text, "127.0.0.1:8070") == 0 || strcmp(back.text, "[::1]:8070") == 0);
}

static void what_is_no_internet_address_is_none_of_a_site(void **state)
{
	(void)state;
	struct http_address address = {.socket.ss_family = AF_UNIX, .length = 4};
	struct site_address site = {.family = 4, .port = 1};
	assert_false(http_address_to_site(&address, &site));
	assert_int_equal(site.family, 0);
	assert_int_equal(site.port, 0);
	assert_false(http_address_to_site(&(struct http_address){0}, &site));
}

static void the_longest_text_fits(void **state)
{
	(void)state;
	struct site_address site = {.family = 6, .port = 65535};
	struct http_address address;
	memset(site.ip, 0xff, sizeof(site.ip));
	http_address_of_site(&address, &site);
	assert_string_equal(address.text, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_become_sockets),
		cmocka_unit_test(names_are_looked_up_and_kept_as_they_are),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(any_part_of_a_text_is_dealt_with),
		cmocka_unit_test(a_site_is_met_where_it_says),
		cmocka_unit_test(a_name_is_told_as_a_number),
		cmocka_unit_test(what_is_no_internet_address_is_none_of_a_site),
		cmocka_unit_test(the_longest_text_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
