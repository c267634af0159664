/* Every bound of the sample services. */
#ifndef SAMPLE_LIMITS_H
#define SAMPLE_LIMITS_H

enum {
	LIMIT_CONNECTIONS = 1000,           /* each has a thread; more wait in the kernel's backlog */
	LIMIT_CONNECTION_BYTES = 64 * 1024, /* request line, headers and read buffer of one connection */
	LIMIT_THREAD_STACK_BYTES = 1024 * 1024,
	LIMIT_IDLE_S = 75,                      /* a connection on which nothing moves is closed */
	LIMIT_JSON_BYTES = 1024 * 1024,         /* a JSON body, ours to read or a peer's to answer */
	LIMIT_DISCARD_BYTES = 64 * 1024 * 1024, /* of a refused body, read so that the refusal can be heard */
	LIMIT_ID_BYTES = 255,                   /* an id in a path or a body */
	LIMIT_NAME_BYTES = 255,                 /* a resource's name */
	LIMIT_RECORDS = 100000,                 /* of one collection */
	LIMIT_POOL_SIZE = 1000000000,           /* of a pool, and of a change of it */
	LIMIT_POOL_NOTES = 10000,               /* of one pool */
	LIMIT_POOL_HOSTS = 1000,                /* of one pool */
	LIMIT_VOLUME_SIZE = 1000000000,         /* of a volume */
	LIMIT_SECRET_BYTES = 65536,             /* what a secret says */
	LIMIT_STACK_SERVERS = 100,              /* of one stack */
	LIMIT_CONTENTS_SHOWN = 100,             /* ids of each kind, where a project is not empty */
	LIMIT_CASCADES = 5,                     /* how often a project is emptied before it is not deleted after all */
	LIMIT_TOKEN_S = 86400,                  /* how long a token is good for at the most */
	LIMIT_CONNECT_MS = 5000,                /* until another service accepts a connection */
	LIMIT_SILENCE_S = 60,                   /* another service that sends nothing for this long has failed */
	LIMIT_IDLE_HANDLES = 256,               /* connections to other services, kept for the next call */
	LIMIT_STOP_S = 30,                      /* for what is being answered when a stop is asked for */
};

#endif
