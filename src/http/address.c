/* Addresses: of sockets, of sites, and as text. */
#include "http/http.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

/* Splits "host:port" or "[host]:port". */
static bool split_address(struct str text, struct str *host, struct str *port)
{
	size_t colon = text.length;
	while (colon > 0 && text.at[colon - 1] != ':')
		colon--;
	if (colon < 2 || colon == text.length)
		return false;
	*host = str_make(text.at, colon - 1);
	*port = str_make(text.at + colon, text.length - colon);
	if (host->at[0] == '[') {
		if (host->length < 3 || host->at[host->length - 1] != ']')
			return false;
		*host = str_make(host->at + 1, host->length - 2);
		return true;
	}
	return memchr(host->at, ':', host->length) == NULL;
}

int http_address_parse(struct http_address *address, struct str text, struct err *err)
{
	struct str host, port;
	char host_text[256], port_text[8];
	*address = (struct http_address){0};
	if (!split_address(text, &host, &port) || host.length >= sizeof(host_text) || port.length >= sizeof(port_text) ||
	    text.length >= sizeof(address->text))
		return err_set(err, ERR_INVALID,
		               "`%.*s` is not an address; write host:port, as in 127.0.0.1:8080 or [::1]:8080",
		               STR_FMT(utf8_truncate(text, 64)));
	for (size_t i = 0; i < port.length; i++)
		if (port.at[i] < '0' || port.at[i] > '9')
			return err_set(err, ERR_INVALID, "`%.*s` is not a port; a port is a number from 1 to 65535", STR_FMT(port));
	snprintf(host_text, sizeof(host_text), "%.*s", STR_FMT(host));
	snprintf(port_text, sizeof(port_text), "%.*s", STR_FMT(port));
	long number = strtol(port_text, NULL, 10); /* digits only, and few enough */
	if (number < 1 || number > 65535)
		return err_set(err, ERR_INVALID, "%s is not a port; a port is a number from 1 to 65535", port_text);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
	int failed = getaddrinfo(host_text, port_text, &hints, &found);
	if (failed)
		return err_set(err, ERR_NOT_FOUND, "cannot look up `%s`: %s", host_text, gai_strerror(failed));
	memcpy(&address->socket, found->ai_addr, found->ai_addrlen);
	address->length = found->ai_addrlen;
	freeaddrinfo(found);
	memcpy(address->text, text.at, text.length);
	return 0;
}

/* ---- Sites ------------------------------------------------------------------------------------------------------- */

void http_address_of_site(struct http_address *address, const struct site_address *site)
{
	char ip[INET6_ADDRSTRLEN];
	*address = (struct http_address){0};
	if (site->family == 4) {
		struct sockaddr_in *four = (struct sockaddr_in *)&address->socket;
		four->sin_family = AF_INET;
		four->sin_port = htons(site->port);
		memcpy(&four->sin_addr, site->ip, sizeof(four->sin_addr));
		address->length = sizeof(*four);
		inet_ntop(AF_INET, site->ip, ip, sizeof(ip));
		snprintf(address->text, sizeof(address->text), "%s:%u", ip, site->port);
	} else {
		struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address->socket;
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(site->port);
		memcpy(&six->sin6_addr, site->ip, sizeof(six->sin6_addr));
		address->length = sizeof(*six);
		inet_ntop(AF_INET6, site->ip, ip, sizeof(ip));
		snprintf(address->text, sizeof(address->text), "[%s]:%u", ip, site->port);
	}
}

bool http_address_to_site(const struct http_address *address, struct site_address *site)
{
	*site = (struct site_address){0};
	if (address->socket.ss_family == AF_INET) {
		const struct sockaddr_in *four = (const struct sockaddr_in *)&address->socket;
		site->family = 4;
		site->port = ntohs(four->sin_port);
		memcpy(site->ip, &four->sin_addr, sizeof(four->sin_addr));
	} else if (address->socket.ss_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->socket;
		site->family = 6;
		site->port = ntohs(six->sin6_port);
		memcpy(site->ip, &six->sin6_addr, sizeof(six->sin6_addr));
	}
	return site->family != 0;
}
