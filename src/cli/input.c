#include "cli/cli.h"

#include <errno.h>
#include <unistd.h>

int cli_read(int fd, size_t at_most, struct buf *out)
{
	char piece[1 << 14];
	for (size_t left = at_most; left > 0;) {
		ssize_t got = read(fd, piece, left < sizeof(piece) ? left : sizeof(piece));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		if (got == 0)
			break;
		buf_put(out, str_make(piece, (size_t)got));
		left -= (size_t)got;
	}
	return 0;
}
