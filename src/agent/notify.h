/* Telling systemd how we are (sd_notify's protocol); nothing happens where it does not listen. */
#ifndef AGENT_NOTIFY_H
#define AGENT_NOTIFY_H

enum agent_notify { AGENT_NOTIFY_READY, AGENT_NOTIFY_RELOADING, AGENT_NOTIFY_STOPPING };

void agent_notify(enum agent_notify what);

#endif
