"""A service that is a process, so that it can be killed and stopped. It serves one request up to a stage, says so on its
standard output, and waits there for its fate.

usage: staged_service.py PORT STAGE        STAGE: accepted, body, answer, answering, or none: serves for ever
"""
import socket
import sys

BODY = 1 << 20


def reach(name):
    if sys.argv[2] == name:
        print(name, flush=True)
        while True:
            sys.stdin.read()  # a pipe that nobody writes to


def serve(sock):
    reach("accepted")
    text = b""
    while b"\r\n\r\n" not in text:
        piece = sock.recv(65536)
        if not piece:
            return False
        text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        if len(body) > 1000:
            reach("body")
        piece = sock.recv(65536)
        if not piece:
            return False
        body += piece
    reach("answer")
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BODY + b"x" * (BODY // 2))
    reach("answering")
    sock.sendall(b"x" * (BODY - BODY // 2))
    return True


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    try:
        while serve(connection):
            pass
    except OSError:
        pass
    connection.close()
