"""Clients that send one byte a second each: half of them a head, half of them a body.

usage: slow_clients.py PORT COUNT        prints "open", then, once its standard input ends, how many were broken off
"""
import resource
import select
import socket
import sys
import time

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "
BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
port, count = int(sys.argv[1]), int(sys.argv[2])
clients = []
poll = select.epoll()
for n in range(count):
    sock = socket.create_connection(("127.0.0.1", port), 60)
    sock.setblocking(False)
    sock.send(BODY if n % 2 else HEAD)
    clients.append(sock)
    poll.register(sock, select.EPOLLIN | select.EPOLLRDHUP)
print("open", flush=True)

broken = set()
sent = 0
began = time.monotonic()
while not select.select([sys.stdin], [], [], 0)[0]:
    # A hundredth of them every hundredth of a second.
    share = clients[sent % 100::100]
    for sock in share:
        if sock.fileno() not in broken:
            try:
                sock.send(b"x")
            except OSError:
                broken.add(sock.fileno())
    sent += 1
    for descriptor, _ in poll.poll(0):
        broken.add(descriptor)
        poll.unregister(descriptor)
    ahead = began + sent / 100 - time.monotonic()
    if ahead > 0:
        time.sleep(ahead)
print(len(broken), sent // 100, flush=True)
