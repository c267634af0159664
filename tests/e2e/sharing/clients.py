"""The same request by different HTTP clients: each is called with (method, url, headers, body) and returns an Answer."""
import base64
import json
import pathlib
import subprocess

from demo_process import BOUND_S, Answer, ask

HELPER = pathlib.Path(__file__).with_name("client.mjs")


def python(method, url, headers, body=None):
    return ask(url, method, headers, body)


def curl(method, url, headers, body=None):
    command = ["curl", "-s", "--include", "--path-as-is", "--globoff", "-X", method, "--max-time", str(BOUND_S), url]
    for name, value in headers.items():
        command += ["-H", f"{name}: {value}"]
    if body is not None:
        command += ["--data-binary", "@-"]
    run = subprocess.run(command, input=(body or "").encode(), capture_output=True, timeout=BOUND_S, check=True)
    head, _, content = run.stdout.partition(b"\r\n\r\n")
    while head.startswith((b"HTTP/1.1 100", b"HTTP/1.1 103")):
        head, _, content = content.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return Answer(int(first.split()[1]), [tuple(line.split(": ", 1)) for line in lines], content)


def node(requests):
    """[{client, method, url, headers, body}], all at once; `client` is `fetch` or `http`."""
    run = subprocess.run(["node", HELPER], input=json.dumps(requests).encode(), capture_output=True, timeout=BOUND_S,
                         check=False)
    assert run.returncode == 0, run.stderr.decode()
    return [Answer(made["status"], made["headers"], base64.b64decode(made["body"])) for made in json.loads(run.stdout)]


def node_fetch(method, url, headers, body=None):
    return node([{"client": "fetch", "method": method, "url": url, "headers": headers, "body": body}])[0]


def node_http(method, url, headers, body=None):
    return node([{"client": "http", "method": method, "url": url, "headers": headers, "body": body}])[0]


ALL = [curl, python, node_fetch, node_http]
