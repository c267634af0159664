"""Malformed and ambiguous messages, on both sides of the proxy.

Two readers of one message must not disagree on where it ends: request smuggling lives on that. So each request here is
either refused (a problem document, then the end of the connection, and the service has seen nothing whole of it), or
normalised (the service gets exactly the bytes that are written down here). After each, a plain request has to come through
on a connection of its own, and be the next thing that the service sees: what was smuggled would come before it.
"""
import contextlib
import threading
import types
import urllib.parse

import pytest

import proxy_lab
from proxy_lab import Broken, request, response

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n"
HOST = b"Host: service.example\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST
POST = b"POST / HTTP/1.1\r\n" + HOST
CHUNKED = b"Transfer-Encoding: chunked\r\n"


@pytest.fixture(scope="module")
def stage(cheops, tmp_path_factory):
    service = proxy_lab.Service()
    agent = proxy_lab.Agent(cheops.path, tmp_path_factory.mktemp("malformed"), proxy_lab.describe(
        services={"service": [service.port]}, timeouts={"idle": "20s"},
        limits={"head": "8KiB", "fields": 32, "target": "1KiB"}))
    yield types.SimpleNamespace(service=service, agent=agent)
    agent.stop()
    service.stop()


@pytest.fixture
def fresh(stage):
    """Nothing is left of the test before, in particular no idle connection on which its script runs."""
    stage.service.usual()
    stage.service.drop_connections()
    stage.service.wait(lambda: not stage.service.wires)
    stage.service.forget()
    return stage


def still_in_step(stage, before):
    """The next thing that the service sees is the next request."""
    assert stage.agent.ask(target="/next").status == 200
    stage.service.wait(lambda: any(message.target == b"/next" for message in stage.service.requests))
    assert [message.target for message in stage.service.requests] == before + [b"/next"]


# ---- requests that are refused ------------------------------------------------------------------------------------------

REFUSED = {
    # where the body ends: contradictions
    "cl-te": (400, POST + b"Content-Length: 6\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + SMUGGLED),
    "te-cl": (400, POST + CHUNKED + b"Content-Length: 4\r\n\r\n5c\r\n" + SMUGGLED + b"\r\n0\r\n\r\n"),
    "te-te": (400, POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n" + SMUGGLED),
    "te-te-obfuscated": (400, POST + CHUNKED + b"Transfer-Encoding: x\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-identity-then-chunked": (400, POST + b"Transfer-Encoding: identity\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + SMUGGLED),
    "te-empty-with-cl": (400, POST + b"Transfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello" + SMUGGLED),
    "cl-cl-differ": (400, POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + SMUGGLED),
    "cl-cl-same": (400, POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + SMUGGLED),
    "cl-cl-zero": (400, POST + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + SMUGGLED),
    # lengths that are none
    "cl-list": (400, POST + b"Content-Length: 5, 5\r\n\r\nhello" + SMUGGLED),
    "cl-list-differ": (400, POST + b"Content-Length: 5, 6\r\n\r\nhello" + SMUGGLED),
    "cl-plus": (400, POST + b"Content-Length: +5\r\n\r\nhello" + SMUGGLED),
    "cl-minus": (400, POST + b"Content-Length: -5\r\n\r\nhello" + SMUGGLED),
    "cl-hex": (400, POST + b"Content-Length: 0x5\r\n\r\nhello" + SMUGGLED),
    "cl-exponent": (400, POST + b"Content-Length: 5e0\r\n\r\nhello" + SMUGGLED),
    "cl-fraction": (400, POST + b"Content-Length: 5.0\r\n\r\nhello" + SMUGGLED),
    "cl-inner-space": (400, POST + b"Content-Length: 5 5\r\n\r\nhello" + SMUGGLED),
    "cl-quoted": (400, POST + b'Content-Length: "5"\r\n\r\nhello' + SMUGGLED),
    "cl-empty": (400, POST + b"Content-Length:\r\n\r\nhello" + SMUGGLED),
    "cl-blank": (400, POST + b"Content-Length: \t \r\n\r\nhello" + SMUGGLED),
    "cl-64-bits": (400, POST + b"Content-Length: 18446744073709551621\r\n\r\nhello" + SMUGGLED),
    "cl-63-bits": (400, POST + b"Content-Length: 9223372036854775813\r\n\r\nhello" + SMUGGLED),
    "cl-40-digits": (400, POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\nhello" + SMUGGLED),
    "cl-vertical-tab": (400, POST + b"Content-Length: \x0b5\r\n\r\nhello" + SMUGGLED),
    "cl-no-break-space": (400, POST + b"Content-Length: \xa05\r\n\r\nhello" + SMUGGLED),
    "cl-tab-behind": (400, POST + b"Content-Length: 5\t\r\n\r\nhello" + SMUGGLED),  # stricter than the RFC: llhttp's way
    # codings
    "te-xchunked": ((400, 501), POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-chunked-x": ((400, 501), POST + b"Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-chunked-chunked": ((400, 501), POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-gzip-chunked": (501, POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-chunked-gzip": ((400, 501), POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-gzip": ((400, 501), POST + b"Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-identity": ((400, 501), POST + b"Transfer-Encoding: identity\r\n\r\n" + SMUGGLED),
    "te-empty": ((400, 501), POST + b"Transfer-Encoding:\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-quoted": ((400, 501), POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n' + SMUGGLED),
    "te-parameter": ((400, 501), POST + b"Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-comma-chunked": ((400, 501), POST + b"Transfer-Encoding: , chunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-vertical-tab": (400, POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "te-in-http-1.0": (400, b"POST / HTTP/1.0\r\n" + HOST + CHUNKED + b"\r\n0\r\n\r\n" + SMUGGLED),
    "te-in-http-1.0-keep-alive": (400, b"POST / HTTP/1.0\r\nConnection: keep-alive\r\n" + HOST + CHUNKED +
                                  b"\r\n0\r\n\r\n" + SMUGGLED),
    # white space and line ends
    "space-before-colon": (400, POST + b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "space-before-colon-cl": (400, POST + b"Content-Length : 5\r\n\r\nhello" + SMUGGLED),
    "tab-before-colon": (400, POST + b"Content-Length\t: 5\r\n\r\nhello" + SMUGGLED),
    "space-before-name": (400, b"POST / HTTP/1.1\r\n Host: service.example\r\nContent-Length: 5\r\n\r\nhello" + SMUGGLED),
    "obs-fold": (400, GET + b"X-Folded: one\r\n two\r\n\r\n" + SMUGGLED),
    "obs-fold-tab": (400, GET + b"X-Folded: one\r\n\ttwo\r\n\r\n" + SMUGGLED),
    "obs-fold-first-line-empty": (400, GET + b"X-Folded:\r\n two\r\n\r\n" + SMUGGLED),
    "obs-fold-last-line-empty": (400, GET + b"X-Folded: one\r\n \r\n\r\n" + SMUGGLED),
    "obs-fold-cl": (400, POST + b"Content-Length:\r\n 5\r\n\r\nhello" + SMUGGLED),
    "obs-fold-te": (400, POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "obs-fold-te-bare-cr": (400, POST + b"Transfer-Encoding:\r chunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "bare-lf-everywhere": (400, b"GET / HTTP/1.1\nHost: service.example\n\n" + SMUGGLED),
    "bare-lf-request-line": (400, b"GET / HTTP/1.1\n" + HOST + b"\r\n" + SMUGGLED),
    "bare-lf-after-field": (400, GET + b"X-One: 1\nX-Two: 2\r\n\r\n" + SMUGGLED),
    "bare-lf-hides-te": (400, POST + b"X-One: 1\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "bare-lf-ends-head": (400, GET + b"X-One: 1\r\n\n" + SMUGGLED),
    "bare-lf-lf-ends-head": (400, GET + b"X-One: 1\n\n" + SMUGGLED),
    "bare-cr-in-value": (400, GET + b"X-One: a\rb\r\n\r\n" + SMUGGLED),
    "bare-cr-ends-field": (400, GET + b"X-One: 1\rX-Two: 2\r\n\r\n" + SMUGGLED),
    "bare-cr-hides-te": (400, POST + b"X-One: 1\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED),
    "bare-cr-ends-head": (400, GET + b"X-One: 1\r\n\r" + SMUGGLED),
    "bare-cr-request-line": ((400, 505), b"GET / HTTP/1.1\rHost: service.example\r\n\r\n" + SMUGGLED),
    "cr-cr-lf": (400, GET + b"X-One: 1\r\r\n\r\n" + SMUGGLED),
    "two-spaces-in-request-line": (400, b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "tab-in-request-line": (400, b"GET\t/ HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "space-after-version": ((400, 505), b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n" + SMUGGLED),
    "space-in-target": (400, b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "request-in-request-line": ((400, 505), b"GET / HTTP/1.1 HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "lower-case-version": (400, b"GET / http/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    # names and values
    "nul-in-value": (400, GET + b"X-One: a\0b\r\n\r\n" + SMUGGLED),
    "nul-in-name": (400, GET + b"X-\0One: 1\r\n\r\n" + SMUGGLED),
    "control-in-value": (400, GET + b"X-One: a\x01b\r\n\r\n" + SMUGGLED),
    "escape-in-value": (400, GET + b"X-One: \x1b[2J\r\n\r\n" + SMUGGLED),
    "delete-in-value": (400, GET + b"X-One: a\x7fb\r\n\r\n" + SMUGGLED),
    "form-feed-in-value": (400, GET + b"X-One: a\x0cb\r\n\r\n" + SMUGGLED),
    "name-with-space": (400, GET + b"X One: 1\r\n\r\n" + SMUGGLED),
    "name-with-slash": (400, GET + b"X/One: 1\r\n\r\n" + SMUGGLED),
    "name-with-paren": (400, GET + b"X(One): 1\r\n\r\n" + SMUGGLED),
    "name-with-quote": (400, GET + b'X"One: 1\r\n\r\n' + SMUGGLED),
    "name-not-ascii": (400, GET + b"X-\xc3\xa9: 1\r\n\r\n" + SMUGGLED),
    "name-empty": (400, GET + b": 1\r\n\r\n" + SMUGGLED),
    "line-without-colon": (400, GET + b"X-One\r\n\r\n" + SMUGGLED),
    "nul-in-target": (400, b"GET /\0 HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "control-in-target": (400, b"GET /\x07 HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "delete-in-target": (400, b"GET /\x7f HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "not-ascii-in-target": (400, b"GET /\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    # chunks
    "chunk-size-overflows": (400, POST + CHUNKED + b"\r\n10000000000000000\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-size-wraps-to-5": (400, POST + CHUNKED + b"\r\n10000000000000005\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-size-negative": (400, POST + CHUNKED + b"\r\n-5\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-size-plus": (400, POST + CHUNKED + b"\r\n+5\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-size-0x": (400, POST + CHUNKED + b"\r\n0x5\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-size-empty": (400, POST + CHUNKED + b"\r\n\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-size-letter": (400, POST + CHUNKED + b"\r\n5g\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-size-space-before": (400, POST + CHUNKED + b"\r\n 5\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-size-underscore": (400, POST + CHUNKED + b"\r\n0_5\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-too-long": (400, POST + CHUNKED + b"\r\n5\r\nhello!!\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-too-short": (400, POST + CHUNKED + b"\r\n5\r\nhi\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-without-line-end": (400, POST + CHUNKED + b"\r\n5\r\nhello0\r\n\r\n" + SMUGGLED),
    "chunk-bare-lf-after-size": (400, POST + CHUNKED + b"\r\n5\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-bare-lf-after-data": (400, POST + CHUNKED + b"\r\n5\r\nhello\n0\r\n\r\n" + SMUGGLED),
    "chunk-bare-cr-after-size": (400, POST + CHUNKED + b"\r\n5\rhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-bare-lf-in-extension": (400, POST + CHUNKED + b"\r\n5;a\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-bare-cr-in-extension": (400, POST + CHUNKED + b"\r\n5;a\rb\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-nul-in-extension": (400, POST + CHUNKED + b"\r\n5;a=\0\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    "chunk-extension-space": (400, POST + CHUNKED + b"\r\n5 ;a\r\nhello\r\n0\r\n\r\n" + SMUGGLED),  # the same
    "chunk-extension-endless": ((400, 431), POST + CHUNKED + b"\r\n5;" + b"a" * 20000),
    "chunk-last-bare-lf": (400, POST + CHUNKED + b"\r\n5\r\nhello\r\n0\n\r\n" + SMUGGLED),
    "chunk-last-no-end": (400, POST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n" + SMUGGLED[:-2]),
    # trailers
    "trailer-bare-lf": (400, POST + CHUNKED + b"\r\n0\r\nX-One: 1\nX-Two: 2\r\n\r\n" + SMUGGLED),
    "trailer-bare-cr": (400, POST + CHUNKED + b"\r\n0\r\nX-One: 1\rX-Two: 2\r\n\r\n" + SMUGGLED),
    "trailer-end-bare-lf": (400, POST + CHUNKED + b"\r\n0\r\n\n" + SMUGGLED),
    "trailer-field-then-bare-lf": (400, POST + CHUNKED + b"\r\n0\r\nX-One: 1\r\n\n" + SMUGGLED),
    "trailer-folded": (400, POST + CHUNKED + b"\r\n0\r\nX-One: 1\r\n 2\r\n\r\n" + SMUGGLED),
    "trailer-folded-first-empty": (400, POST + CHUNKED + b"\r\n0\r\nX-One:\r\n 2\r\n\r\n" + SMUGGLED),
    "trailer-nul": (400, POST + CHUNKED + b"\r\n0\r\nX-One: a\0b\r\n\r\n" + SMUGGLED),
    "trailer-control": (400, POST + CHUNKED + b"\r\n0\r\nX-One: a\x01b\r\n\r\n" + SMUGGLED),
    "trailer-coding": (400, POST + CHUNKED + b"\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n" + SMUGGLED),
    "trailer-space-before-colon": (400, POST + CHUNKED + b"\r\n0\r\nX-One : 1\r\n\r\n" + SMUGGLED),
    "trailer-name-empty": (400, POST + CHUNKED + b"\r\n0\r\n: 1\r\n\r\n" + SMUGGLED),
    "trailer-too-large": (431, POST + CHUNKED + b"\r\n0\r\nX-One: " + b"a" * 9000 + b"\r\n\r\n" + SMUGGLED),
    "trailer-too-many": (431, POST + CHUNKED + b"\r\n0\r\n" + b"a:\r\n" * 4000 + b"\r\n" + SMUGGLED),
    # targets and methods
    "authority-form": (400, b"GET service.example:80 HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "connect": (501, b"CONNECT service.example:80 HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "connect-origin-form": ((400, 501), b"CONNECT / HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "asterisk-form-of-get": (400, b"GET * HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "target-without-slash": (400, b"GET index HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "target-empty": (400, b"GET HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "target-query-only": (400, b"GET ?q HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "target-fragment": (400, b"GET /a#b HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "absolute-form-https": (400, b"GET https://service.example/ HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "absolute-form-ftp": (400, b"GET ftp://service.example/ HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "absolute-form-user": (400, b"GET http://user@service.example/ HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "absolute-form-no-host": (400, b"GET http:///path HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "absolute-form-bad-port": (400, b"GET http://service.example:x/ HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "absolute-form-without-host-field": (400, b"GET http://service.example/ HTTP/1.1\r\n\r\n" + SMUGGLED),
    "method-unknown": (501, b"FROBNICATE / HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "method-lower-case": ((400, 501), b"get / HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "method-with-suffix": ((400, 501), b"GETX / HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "method-not-a-token": (400, b"G@T / HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "tls": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 64),
    # Host
    "host-missing": (400, b"GET / HTTP/1.1\r\nX-One: 1\r\n\r\n" + SMUGGLED),
    "host-twice": (400, GET + b"Host: evil.example\r\n\r\n" + SMUGGLED),
    "host-twice-same": (400, GET + HOST + b"\r\n" + SMUGGLED),
    "host-list": (400, b"GET / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n" + SMUGGLED),
    "host-with-space": (400, b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n" + SMUGGLED),
    "host-with-path": (400, b"GET / HTTP/1.1\r\nHost: a.example/path\r\n\r\n" + SMUGGLED),
    "host-with-user": (400, b"GET / HTTP/1.1\r\nHost: user@a.example\r\n\r\n" + SMUGGLED),
    "host-with-bad-port": (400, b"GET / HTTP/1.1\r\nHost: a.example:8o\r\n\r\n" + SMUGGLED),
    "host-with-two-ports": (400, b"GET / HTTP/1.1\r\nHost: a.example:80:81\r\n\r\n" + SMUGGLED),
    "host-only-port": (400, b"GET / HTTP/1.1\r\nHost: :80\r\n\r\n" + SMUGGLED),
    "host-open-bracket": (400, b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n" + SMUGGLED),
    "host-not-ascii": (400, b"GET / HTTP/1.1\r\nHost: \xc3\xa9.example\r\n\r\n" + SMUGGLED),
    # versions
    "http-0.9": ((400, 505), b"GET /\r\n\r\n" + SMUGGLED),
    "http-1.2": (505, b"GET / HTTP/1.2\r\n" + HOST + b"\r\n" + SMUGGLED),
    "http-2.0": (505, b"GET / HTTP/2.0\r\n" + HOST + b"\r\n" + SMUGGLED),
    "http-9.9": (505, b"GET / HTTP/9.9\r\n" + HOST + b"\r\n" + SMUGGLED),
    "http-1.10": ((400, 505), b"GET / HTTP/1.10\r\n" + HOST + b"\r\n" + SMUGGLED),
    "http-1": ((400, 505), b"GET / HTTP/1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "http-2-preface": ((400, 505), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"),
    "rtsp": ((400, 505), b"GET / RTSP/1.0\r\n" + HOST + b"\r\n" + SMUGGLED),
    "ice": ((400, 505), b"SOURCE / ICE/1.0\r\n" + HOST + b"\r\n" + SMUGGLED),
    # limits, and what is expected of us
    "target-too-long": (414, b"GET /" + b"a" * 1024 + b" HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "target-much-too-long": (414, b"GET /" + b"a" * 50000 + b" HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED),
    "field-too-large": (431, GET + b"X-One: " + b"a" * 8192 + b"\r\n\r\n" + SMUGGLED),
    "name-too-large": (431, GET + b"X-" + b"a" * 70000 + b": 1\r\n\r\n" + SMUGGLED),
    "too-many-fields": (431, GET + b"X-One: 1\r\n" * 32 + b"\r\n" + SMUGGLED),
    "endless-empty-lines": ((400, 431), b"\r\n" * 5000 + GET + b"\r\n" + SMUGGLED),
    "expect-other": (417, POST + b"Expect: 200-ok\r\nContent-Length: 5\r\n\r\nhello" + SMUGGLED),
    "expect-twice": ((400, 417), POST + b"Expect: 100-continue\r\nExpect: x\r\nContent-Length: 5\r\n\r\nhello" + SMUGGLED),
    "scope-twice": (400, GET + b"Scope: Site1\r\nScope: Site2\r\n\r\n" + SMUGGLED),
}


@pytest.mark.parametrize("pieces", ["whole", "bytes"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(fresh, name, pieces):
    status, text = REFUSED[name]
    step = len(text) if pieces == "whole" else 1 if len(text) < 1000 else 500
    with fresh.agent.client() as wire:
        with contextlib.suppress(OSError):  # it may answer and close before all is sent
            for at in range(0, len(text), step):
                wire.send(text[at:at + step])
        answer = wire.response()
        assert answer.status in (status if isinstance(status, tuple) else (status,)), answer
        assert answer.problem == "malformed-request"
        assert answer.json["detail"], answer
        assert answer.closes
        assert wire.has_ended()
    assert fresh.service.requests == []
    still_in_step(fresh, [])


# ---- requests that are normalised ---------------------------------------------------------------------------------------

ADDED = {b"X-Forwarded-For": b"127.0.0.1", b"X-Forwarded-Proto": b"http", b"X-Forwarded-Host": b"service.example",
         b"Forwarded": b"for=127.0.0.1;proto=http", b"Via": b"1.1 Site1"}


def seen(line, *fields, body=b"", trailers=(), chunked=False, host=b"service.example", without=(), **added):
    """What the service has to get: these, and what the agent adds."""
    lines = list(fields) + ([b"Host: " + host] if host is not None else [])
    values = {**ADDED, b"X-Forwarded-Host": host, **{name.replace("_", "-").encode(): value for name, value in added.items()}}
    lines += [name + b": " + value for name, value in values.items() if name not in without and value is not None]
    lines += [b"Transfer-Encoding: chunked"] if chunked else []
    return line, sorted(lines), body, list(trailers)


def as_seen(message):
    return (message.line, sorted(name + b": " + value for name, value in message.fields), message.body,
            [name + b": " + value for name, value in message.trailers])


BODY_5 = (b"Content-Length: 5",)
NORMALISED = {
    "plain": (GET + b"\r\n", [seen(b"GET / HTTP/1.1")]),
    "spaces-around-value": (GET + b"X-One: \t a b \t \r\n\r\n", [seen(b"GET / HTTP/1.1", b"X-One: a b")]),
    "no-space-after-colon": (GET + b"X-One:1\r\n\r\n", [seen(b"GET / HTTP/1.1", b"X-One: 1")]),
    "value-empty": (GET + b"X-One:\r\nX-Two: \r\nX-Three: 3\r\n\r\n",
                    [seen(b"GET / HTTP/1.1", b"X-One: ", b"X-Two: ", b"X-Three: 3")]),
    "value-not-ascii": (GET + b"X-One: \xc3\xa9\xff\r\n\r\n", [seen(b"GET / HTTP/1.1", b"X-One: \xc3\xa9\xff")]),
    "value-inner-tab": (GET + b"X-One: a\tb\r\n\r\n", [seen(b"GET / HTTP/1.1", b"X-One: a\tb")]),
    "name-with-all-token-characters": (GET + b"!#$%&'*+-.^_`|~9aZ: 1\r\n\r\n",
                                       [seen(b"GET / HTTP/1.1", b"!#$%&'*+-.^_`|~9aZ: 1")]),
    "empty-line-first": (b"\r\n" + GET + b"\r\n", [seen(b"GET / HTTP/1.1")]),
    "two-requests": (GET + b"\r\n" + GET.replace(b"/ ", b"/2 ") + b"\r\n",
                     [seen(b"GET / HTTP/1.1"), seen(b"GET /2 HTTP/1.1")]),
    "cl-spaces": (POST + b"Content-Length: \t5 \r\n\r\nhello", [seen(b"POST / HTTP/1.1", *BODY_5, body=b"hello")]),
    "cl-leading-zeros": (POST + b"Content-Length: 005\r\n\r\nhello",
                         [seen(b"POST / HTTP/1.1", b"Content-Length: 005", body=b"hello")]),
    "cl-zero-then-request": (POST + b"Content-Length: 0\r\n\r\n" + GET + b"\r\n",
                             [seen(b"POST / HTTP/1.1", b"Content-Length: 0"), seen(b"GET / HTTP/1.1")]),
    "get-with-body": (GET + b"Content-Length: 5\r\n\r\nhello" + GET + b"\r\n",
                      [seen(b"GET / HTTP/1.1", *BODY_5, body=b"hello"), seen(b"GET / HTTP/1.1")]),
    "post-without-length-has-no-body": (POST + b"\r\n" + GET + b"\r\n", [seen(b"POST / HTTP/1.1"), seen(b"GET / HTTP/1.1")]),
    "body-that-looks-like-a-request": (POST + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED,
                                       [seen(b"POST / HTTP/1.1", b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED)]),
    # chunks
    "chunked": (POST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\n", [seen(b"POST / HTTP/1.1", body=b"hello", chunked=True)]),
    "chunked-any-case": (POST + b"transfer-encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                         [seen(b"POST / HTTP/1.1", body=b"hello", chunked=True)]),
    "chunk-size-upper-case-and-zeros": (POST + CHUNKED + b"\r\n000A\r\n0123456789\r\n00\r\n\r\n",
                                        [seen(b"POST / HTTP/1.1", body=b"0123456789", chunked=True)]),
    "chunk-extensions": (POST + CHUNKED + b"\r\n5;a;b=\"x;y\"\r\nhello\r\n0;last=1\r\n\r\n",
                         [seen(b"POST / HTTP/1.1", body=b"hello", chunked=True)]),
    "chunk-extension-like-a-chunk": (POST + CHUNKED + b"\r\n5;2\r\nhello\r\n0;5\r\n\r\n" + GET + b"\r\n",
                                     [seen(b"POST / HTTP/1.1", body=b"hello", chunked=True), seen(b"GET / HTTP/1.1")]),
    "chunked-then-request": (POST + CHUNKED + b"\r\n0\r\n\r\n" + GET + b"\r\n",
                             [seen(b"POST / HTTP/1.1", chunked=True), seen(b"GET / HTTP/1.1")]),
    "many-chunks": (POST + CHUNKED + b"\r\n" + b"1\r\nx\r\n" * 3000 + b"0\r\n\r\n",
                    [seen(b"POST / HTTP/1.1", body=b"x" * 3000, chunked=True)]),
    "trailers": (POST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Empty:\r\nX-Last: a b \r\n\r\n" + GET + b"\r\n",
                 [seen(b"POST / HTTP/1.1", body=b"hello", chunked=True,
                       trailers=[b"X-Sum: 1", b"X-Empty: ", b"X-Last: a b"]), seen(b"GET / HTTP/1.1")]),
    # What frames, routes, or is Cheops' own has no business in a trailer (RFC 9110, 6.5.1); a service may merge it.
    "trailers-forbidden": (POST + CHUNKED + b"\r\n0\r\nContent-Length: 5\r\nHost: evil\r\n"
                           b"X-Sum: 1\r\nConnection: close\r\nScope: Site2\r\nCheops-Hop: v1\r\nX-Forwarded-For: 6.6.6.6\r\n"
                           b"Via: 1.1 x\r\nTE: x\r\nUpgrade: x\r\nKeep-Alive: x\r\nExpect: x\r\n\r\n",
                           [seen(b"POST / HTTP/1.1", chunked=True, trailers=[b"X-Sum: 1"])]),
    # targets
    "absolute-form": (b"GET http://other.example:81/a?b HTTP/1.1\r\n" + HOST + b"\r\n",
                      [seen(b"GET /a?b HTTP/1.1", host=b"other.example:81")]),
    "absolute-form-any-case": (b"GET HTTP://Other.Example/ HTTP/1.1\r\n" + HOST + b"\r\n",
                               [seen(b"GET / HTTP/1.1", host=b"Other.Example")]),
    "absolute-form-without-path": (b"GET http://other.example HTTP/1.1\r\n" + HOST + b"\r\n",
                                   [seen(b"GET / HTTP/1.1", host=b"other.example")]),
    "absolute-form-options": (b"OPTIONS http://other.example HTTP/1.1\r\n" + HOST + b"\r\n",
                              [seen(b"OPTIONS * HTTP/1.1", host=b"other.example")]),
    "asterisk-form": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", [seen(b"OPTIONS * HTTP/1.1")]),
    "target-is-not-touched": (b"GET //a/../%2e%2e/%zz?x=[]{}|\\^`\"<>& HTTP/1.1\r\n" + HOST + b"\r\n",
                              [seen(b"GET //a/../%2e%2e/%zz?x=[]{}|\\^`\"<>& HTTP/1.1")]),
    "host-empty": (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", [seen(b"GET / HTTP/1.1", host=b"")]),
    "host-with-port": (b"GET / HTTP/1.1\r\nHost: a.example:8081\r\n\r\n", [seen(b"GET / HTTP/1.1", host=b"a.example:8081")]),
    "host-ipv6": (b"GET / HTTP/1.1\r\nHost: [::1]:8081\r\n\r\n", [seen(b"GET / HTTP/1.1", host=b"[::1]:8081")]),
    # hop by hop
    "connection-nominates": (GET + b"Connection: X-One , x-two\r\nX-One: 1\r\nX-Two: 2\r\nX-Three: 3\r\nX-ONE: 4\r\n\r\n",
                             [seen(b"GET / HTTP/1.1", b"X-Three: 3")]),
    "connection-twice": (GET + b"Connection: X-One\r\nConnection: keep-alive, X-Two\r\nX-One: 1\r\nX-Two: 2\r\n\r\n",
                         [seen(b"GET / HTTP/1.1")]),
    "connection-nominates-what-was-before": (GET + b"X-One: 1\r\nConnection: x-one\r\n\r\n", [seen(b"GET / HTTP/1.1")]),
    "connection-nominates-host": (GET + b"Connection: Host\r\n\r\n", [seen(b"GET / HTTP/1.1")]),
    "connection-nominates-length": (POST + b"Connection: Content-Length\r\nContent-Length: 5\r\n\r\nhello",
                                    [seen(b"POST / HTTP/1.1", *BODY_5, body=b"hello")]),
    "connection-nominates-coding": (POST + b"Connection: Transfer-Encoding\r\n" + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\n",
                                    [seen(b"POST / HTTP/1.1", body=b"hello", chunked=True)]),
    "connection-nominates-what-we-add": (
        GET + b"Connection: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, Forwarded, Via\r\n"
        b"X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\nForwarded: for=9.9.9.9\r\n"
        b"Via: 1.1 x\r\n\r\n", [seen(b"GET / HTTP/1.1")]),
    "hop-by-hop": (GET + b"Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nX-One: 1\r\n\r\n",
                   [seen(b"GET / HTTP/1.1", b"X-One: 1")]),
    "upgrade-h2c": (GET + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n",
                    [seen(b"GET / HTTP/1.1")]),
    "upgrade-list-with-h2c": (GET + b"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", [seen(b"GET / HTTP/1.1")]),
    "upgrade-h2c-twice": (GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n",
                          [seen(b"GET / HTTP/1.1")]),
    "upgrade-not-nominated": (GET + b"Upgrade: websocket\r\n\r\n", [seen(b"GET / HTTP/1.1")]),
    "upgrade-in-http-1.0": (b"GET / HTTP/1.0\r\nConnection: Upgrade, keep-alive\r\nUpgrade: websocket\r\n" + HOST + b"\r\n",
                            [seen(b"GET / HTTP/1.1")]),
    "upgrade": (GET + b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
                [seen(b"GET / HTTP/1.1", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: x")]),
    "hop-header-from-outside": (GET + b"Cheops-Hop: v1 service=x from=Site2 hops=1 mac=00\r\n\r\n", [seen(b"GET / HTTP/1.1")]),
    # who was there before us
    "forwarded-is-continued": (
        GET + b"X-Forwarded-For: 9.9.9.9\r\nForwarded: for=9.9.9.9\r\nX-Forwarded-Proto: https\r\n"
        b"X-Forwarded-Host: first.example\r\n\r\n",
        [seen(b"GET / HTTP/1.1", X_Forwarded_For=b"9.9.9.9, 127.0.0.1", Forwarded=b"for=9.9.9.9, for=127.0.0.1;proto=http",
              X_Forwarded_Proto=b"https", X_Forwarded_Host=b"first.example")]),
    # The last element is the one that a service can trust: it must be ours, however many fields came.
    "forwarded-twice-ours-is-last": (
        GET + b"X-Forwarded-For: 9.9.9.9\r\nForwarded: for=9.9.9.9\r\nX-Forwarded-For: 8.8.8.8\r\nForwarded: for=8.8.8.8\r\n\r\n",
        [seen(b"GET / HTTP/1.1", X_Forwarded_For=b"9.9.9.9, 8.8.8.8, 127.0.0.1",
              Forwarded=b"for=9.9.9.9, for=8.8.8.8, for=127.0.0.1;proto=http")]),
    "via-is-continued": (GET + b"Via: 1.0 first\r\n\r\n", [seen(b"GET / HTTP/1.1", b"Via: 1.0 first")]),
    # RFC 9110, 7.6.2
    "max-forwards-counts-down": (b"OPTIONS / HTTP/1.1\r\n" + HOST + b"Max-Forwards: 7\r\n\r\n",
                                 [seen(b"OPTIONS / HTTP/1.1", b"Max-Forwards: 6")]),
    "max-forwards-of-get-stays": (GET + b"Max-Forwards: 0\r\n\r\n", [seen(b"GET / HTTP/1.1", b"Max-Forwards: 0")]),
    # HTTP/1.0
    "http-1.0": (b"GET / HTTP/1.0\r\n" + HOST + b"\r\n", [seen(b"GET / HTTP/1.1")]),
    "http-1.0-keep-alive": (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n" + HOST + b"\r\n", [seen(b"GET / HTTP/1.1")]),
    "http-1.0-then-more": (b"GET / HTTP/1.0\r\n" + HOST + b"\r\n" + SMUGGLED, [seen(b"GET / HTTP/1.1")]),
    "close-then-more": (GET + b"Connection: close\r\n\r\n" + SMUGGLED, [seen(b"GET / HTTP/1.1")]),
    "close-in-list-then-more": (GET + b"Connection: foo, close\r\n\r\n" + SMUGGLED, [seen(b"GET / HTTP/1.1")]),
}


@pytest.mark.parametrize("pieces", ["whole", "bytes"])
@pytest.mark.parametrize("name", NORMALISED)
def test_normalised(fresh, name, pieces):
    text, expected = NORMALISED[name]
    step = 1 if pieces == "bytes" else len(text)
    with fresh.agent.client() as wire:
        for at in range(0, len(text), step):
            wire.send(text[at:at + step])
        for _ in expected:
            assert wire.response().status == 200
        assert [as_seen(message) for message in fresh.service.requests] == expected
        wire.end()
        assert wire.to_end() == b""
    still_in_step(fresh, [message.target for message in fresh.service.requests])


def test_http_1_0_without_host_gets_one(fresh):
    with fresh.agent.client() as wire:
        wire.send(b"GET / HTTP/1.0\r\n\r\n")
        assert wire.response().closes and wire.has_ended()
    assert fresh.service.requests[0].one(b"Host") == fresh.service.address.encode()


@pytest.mark.parametrize("method,status", [("OPTIONS", 200), ("TRACE", 405)])
def test_max_forwards_zero_is_answered_here(fresh, method, status):
    with fresh.agent.client() as wire:
        wire.send(request(method, Max_Forwards="0"))
        answer = wire.response()
        assert answer.status == status, answer
    still_in_step(fresh, [])


def test_a_refused_body_leaves_the_service_with_a_part_that_it_can_tell_from_the_whole(fresh):
    """The head has been passed on when the body turns out to be malformed."""
    with fresh.agent.client() as wire:
        wire.send(POST + CHUNKED + b"\r\n5\r\nhello\r\n")
        fresh.service.wait(lambda: fresh.service.accepted == 1)
        wire.send(b"zz\r\n" + SMUGGLED)
        assert wire.response().status == 400
        assert wire.has_ended()
    fresh.service.wait(lambda: fresh.service.partial)
    assert fresh.service.requests == []


# ---- responses ----------------------------------------------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\n"
SPLIT = b"HTTP/1.1 200 Smuggled\r\nContent-Length: 4\r\n\r\nevil"

# (bytes of the service, after which it closes the connection)
BAD_RESPONSES = {
    "empty": b"",
    "not-http": b"hello\r\n\r\n",
    "http-0.9": b"<html></html>",
    "http-2": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "http-1.2": b"HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "lower-case": b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "status-of-two-digits": b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok",
    "status-of-four-digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok",
    "status-not-a-number": b"HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nok",
    "status-000": b"HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nok",
    "status-099": b"HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok",
    "reason-with-bare-cr": b"HTTP/1.1 200 O\rK\r\nContent-Length: 2\r\n\r\nok",
    "reason-with-control": b"HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok",
    "reason-with-nul": b"HTTP/1.1 200 O\0K\r\nContent-Length: 2\r\n\r\nok",
    "cl-te": OK + b"Content-Length: 2\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + SPLIT,
    "te-cl": OK + CHUNKED + b"Content-Length: 2\r\n\r\n0\r\n\r\n" + SPLIT,
    "te-te": OK + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n" + SPLIT,
    "te-gzip-chunked": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + SPLIT,
    "te-chunked-chunked": OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + SPLIT,
    "te-xchunked": OK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SPLIT,
    "te-identity": OK + b"Transfer-Encoding: identity\r\n\r\nhello",
    "te-in-http-1.0": b"HTTP/1.0 200 OK\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + SPLIT,
    "cl-cl-differ": OK + b"Content-Length: 2\r\nContent-Length: 0\r\n\r\nok",
    "cl-cl-same": OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    "cl-list": OK + b"Content-Length: 2, 2\r\n\r\nok",
    "cl-negative": OK + b"Content-Length: -2\r\n\r\nok",
    "cl-plus": OK + b"Content-Length: +2\r\n\r\nok",
    "cl-hex": OK + b"Content-Length: 0x2\r\n\r\nok",
    "cl-empty": OK + b"Content-Length:\r\n\r\nok",
    "cl-huge": OK + b"Content-Length: 99999999999999999999999\r\n\r\nok",
    "obs-fold": OK + b"X-One: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
    "obs-fold-first-empty": OK + b"X-One:\r\n b\r\nContent-Length: 2\r\n\r\nok",
    "obs-fold-te": OK + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "space-before-colon": OK + b"Content-Length : 2\r\n\r\nok",
    "bare-lf": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "bare-lf-field": OK + b"X-One: 1\nContent-Length: 2\r\n\r\nok",
    "bare-lf-ends-head": OK + b"Content-Length: 2\r\n\nok",
    "bare-cr-field": OK + b"X-One: 1\rX-Two: 2\r\nContent-Length: 2\r\n\r\nok",
    "nul-in-value": OK + b"X-One: a\0b\r\nContent-Length: 2\r\n\r\nok",
    "control-in-value": OK + b"X-One: a\x02b\r\nContent-Length: 2\r\n\r\nok",
    "name-with-space": OK + b"X One: 1\r\nContent-Length: 2\r\n\r\nok",
    "name-empty": OK + b": 1\r\nContent-Length: 2\r\n\r\nok",
    "head-too-large": OK + b"X-One: " + b"a" * 9000 + b"\r\nContent-Length: 2\r\n\r\nok",
    "too-many-fields": OK + b"X-One: 1\r\n" * 40 + b"Content-Length: 2\r\n\r\nok",
    "head-cut-short": OK + b"Content-Length: 2\r\n",
    "101-not-asked-for": b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello",
    "interim-with-bad-field": b"HTTP/1.1 103 Early\r\nX One: 1\r\n\r\n" + response(),
    "only-interim": b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n",
    "interim-flood": b"HTTP/1.1 102 Processing\r\n\r\n" * 20000,
}


def play_response(stage, text, close=True):
    def script(wire):
        while (message := wire.request()) is not None:
            stage.service.note(message)
            wire.send(text if message.target == b"/bad" else response())
            if message.target == b"/bad" and close:
                return

    stage.service.script = script


@pytest.mark.parametrize("name", BAD_RESPONSES)
def test_bad_response(fresh, name):
    """502 with the reason; the client's connection is not to blame, and goes on."""
    play_response(fresh, BAD_RESPONSES[name])
    with fresh.agent.client() as wire:
        wire.send(request(target="/bad"))
        answer = wire.response(interim=[])
        assert answer.status == 502, answer
        assert answer.problem in ("malformed-response", "broken-answer"), answer
        assert answer.json["site"] == "Site1" and answer.json["service"] == "service", answer
        assert b"error=" in answer.one(b"Proxy-Status"), answer
        wire.send(request(target="/after"))
        answer = wire.response()
        assert (answer.status, answer.body) == (200, b"ok")
    assert [message.target for message in fresh.service.requests] == [b"/bad", b"/after"]


# The head was good, so the client has it when the body turns out not to be: its connection breaks off.
CUT_RESPONSES = {
    "length-cut-short": OK + b"Content-Length: 100\r\n\r\nhello",
    "length-no-body": OK + b"Content-Length: 100\r\n\r\n",
    "chunk-cut-short": OK + CHUNKED + b"\r\n64\r\nhello",
    "chunks-without-last": OK + CHUNKED + b"\r\n5\r\nhello\r\n",
    "chunks-without-trailer-end": OK + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n",
    "chunk-size-bad": OK + CHUNKED + b"\r\n5\r\nhello\r\nzz\r\n" + SPLIT,
    "chunk-size-overflow": OK + CHUNKED + b"\r\n10000000000000005\r\nhello\r\n0\r\n\r\n",
    "chunk-too-long": OK + CHUNKED + b"\r\n3\r\nhello\r\n0\r\n\r\n",
    "chunk-bare-lf": OK + CHUNKED + b"\r\n5\nhello\r\n0\r\n\r\n",
    "chunk-extension-endless": OK + CHUNKED + b"\r\n5;" + b"a" * 20000,
    "trailer-bad": OK + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nX One: 1\r\n\r\n",
    "trailer-end-bare-lf": OK + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\n",
    "trailer-folded": OK + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nX-One: 1\r\n 2\r\n\r\n",
    "trailer-control": OK + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nX-One: \x01\r\n\r\n",
    "trailer-too-large": OK + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nX-One: " + b"a" * 9000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("name", CUT_RESPONSES)
def test_cut_response_never_ends_well(fresh, name, version):
    play_response(fresh, CUT_RESPONSES[name])
    with fresh.agent.client() as wire:
        wire.send(request(target="/bad").replace(b"HTTP/1.1", b"HTTP/" + version.encode()))
        try:
            answer = wire.response()
        except Broken:
            pass
        else:  # nothing was sent on yet: then an answer may say so
            assert answer.status == 502 and answer.problem, answer
    still_in_step(fresh, [b"/bad"])


def test_a_close_delimited_response_that_is_reset_never_ends_well(fresh):
    def script(wire):
        fresh.service.note(wire.request())
        wire.send(OK + b"\r\nhello")
        ready.wait(proxy_lab.PATIENCE_S)
        wire.abort()

    for version in (b"HTTP/1.1", b"HTTP/1.0"):
        ready = threading.Event()
        fresh.service.script = script
        with fresh.agent.client() as wire:
            wire.send(request(target="/bad").replace(b"HTTP/1.1", version))
            head = wire.response_head()
            ready.set()
            with pytest.raises(Broken):
                wire.body(head, until_close=True)


def got(status, *fields, body=b"", chunked=False, trailers=(), reason=b"OK", close=False):
    lines = list(fields) + [b"Via: 1.1 Site1"] + ([b"Transfer-Encoding: chunked"] if chunked else [])
    return (b"HTTP/1.1 %d %s" % (status, reason), sorted(lines + ([b"Connection: close"] if close else [])), body,
            list(trailers))


GOOD_RESPONSES = {
    # name: method, bytes of the service, whether it closes, what the client gets, whether the link is used again
    "length": ("GET", OK + b"Content-Length: 5\r\n\r\nhello", False,
               got(200, b"Content-Length: 5", body=b"hello"), True),
    "empty": ("GET", OK + b"Content-Length: 0\r\n\r\n", False, got(200, b"Content-Length: 0"), True),
    "reason-empty": ("GET", b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", False, got(200, b"Content-Length: 0", reason=b""), True),
    "reason-not-ascii": ("GET", b"HTTP/1.1 404 Pas trouv\xe9\r\nContent-Length: 0\r\n\r\n", False,
                         got(404, b"Content-Length: 0", reason=b"Pas trouv\xe9"), True),
    "status-999": ("GET", b"HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n", False, got(599, b"Content-Length: 0", reason=b"Odd"), True),
    "chunked": ("GET", OK + CHUNKED + b"\r\n5;x=y\r\nhello\r\n0\r\n\r\n", False, got(200, body=b"hello", chunked=True), True),
    "trailers": ("GET", OK + CHUNKED + b"Trailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Empty:\r\n\r\n", False,
                 got(200, b"Trailer: X-Sum", body=b"hello", chunked=True, trailers=[b"X-Sum: 1", b"X-Empty: "]), True),
    "trailers-forbidden": ("GET", OK + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nContent-Length: 3\r\nX-Sum: 1\r\n"
                           b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n", False,
                           got(200, body=b"hello", chunked=True, trailers=[b"X-Sum: 1"]), True),
    "until-close": ("GET", OK + b"\r\nhello", True, got(200, body=b"hello", chunked=True), False),
    "until-close-1.0": ("GET", b"HTTP/1.0 200 OK\r\n\r\nhello", True, got(200, body=b"hello", chunked=True), False),
    "until-close-empty": ("GET", OK + b"\r\n", True, got(200, chunked=True), False),
    "1.0-with-length": ("GET", b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", False,
                        got(200, b"Content-Length: 5", body=b"hello"), False),
    "1.0-keep-alive": ("GET", b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello", False,
                       got(200, b"Content-Length: 5", body=b"hello"), True),
    "close": ("GET", OK + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello", True,
              got(200, b"Content-Length: 5", body=b"hello"), False),
    "hop-by-hop": ("GET", OK + b"Connection: X-One, keep-alive\r\nX-One: 1\r\nKeep-Alive: timeout=9\r\nProxy-Connection: x\r\n"
                   b"TE: x\r\nUpgrade: h2c\r\nX-Two: 2\r\nContent-Length: 5\r\n\r\nhello", False,
                   got(200, b"X-Two: 2", b"Content-Length: 5", body=b"hello"), True),
    "nominates-length": ("GET", OK + b"Connection: Content-Length\r\nContent-Length: 5\r\n\r\nhello", False,
                         got(200, b"Content-Length: 5", body=b"hello"), True),
    "fields-twice": ("GET", OK + b"Set-Cookie: a\r\nSet-Cookie: b\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n", False,
                     got(200, b"Set-Cookie: a", b"Set-Cookie: b", b"X-Empty: ", b"Content-Length: 0"), True),
    "via-is-continued": ("GET", OK + b"Via: 1.0 x\r\nContent-Length: 0\r\n\r\n", False, got(200, b"Via: 1.0 x", b"Content-Length: 0"), True),
    # no body, whatever the fields say
    "204": ("GET", b"HTTP/1.1 204 OK\r\n\r\n", False, got(204), True),
    "204-with-length": ("GET", b"HTTP/1.1 204 OK\r\nContent-Length: 5\r\n\r\n", False, got(204), True),
    "204-with-coding": ("GET", b"HTTP/1.1 204 OK\r\n" + CHUNKED + b"\r\n", False, got(204), True),
    "204-with-body": ("GET", b"HTTP/1.1 204 OK\r\nContent-Length: 4\r\n\r\n" + SPLIT, False, got(204), False),
    "304-with-length": ("GET", b"HTTP/1.1 304 OK\r\nContent-Length: 5\r\nETag: x\r\n\r\n", False,
                        got(304, b"Content-Length: 5", b"ETag: x"), True),
    "304-with-body": ("GET", b"HTTP/1.1 304 OK\r\nContent-Length: 5\r\n\r\n" + SPLIT, False, got(304, b"Content-Length: 5"), False),
    "head": ("HEAD", OK + b"Content-Length: 5\r\n\r\n", False, got(200, b"Content-Length: 5"), True),
    "head-chunked": ("HEAD", OK + CHUNKED + b"\r\n", False, None, True),
    "head-no-framing": ("HEAD", OK + b"X-One: 1\r\n\r\n", False, got(200, b"X-One: 1"), True),
    "head-with-body": ("HEAD", OK + b"Content-Length: 5\r\n\r\n" + SPLIT, False, got(200, b"Content-Length: 5"), False),
    "more-than-length": ("GET", OK + b"Content-Length: 2\r\n\r\nok" + SPLIT, False, got(200, b"Content-Length: 2", body=b"ok"), False),
    "more-than-chunks": ("GET", OK + CHUNKED + b"\r\n0\r\n\r\n" + SPLIT, False, got(200, chunked=True), False),
    "two-responses": ("GET", OK + b"Content-Length: 0\r\n\r\n" + SPLIT, False, got(200, b"Content-Length: 0"), False),
    "426": ("GET", b"HTTP/1.1 426 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n", False,
            got(426, b"Connection: Upgrade", b"Upgrade: websocket", b"Content-Length: 0"), True),
}


@pytest.mark.parametrize("pieces", ["whole", "bytes"])
@pytest.mark.parametrize("name", GOOD_RESPONSES)
def test_good_response(fresh, name, pieces):
    method, text, close, expected, reusable = GOOD_RESPONSES[name]

    def script(wire):
        while (message := wire.request()) is not None:
            fresh.service.note(message)
            if message.target != b"/bad":
                wire.send(response())
                continue
            for at in range(0, len(text), 1 if pieces == "bytes" else len(text)):
                wire.send(text[at:at + (1 if pieces == "bytes" else len(text))])
            if close:
                return

    fresh.service.script = script
    with fresh.agent.client() as wire:
        wire.send(request(method, "/bad"))
        answer = wire.response(method.encode())
        if expected is None:  # a coding for a body that is not there may be told or not
            assert answer.status == 200 and answer.body == b""
        else:
            assert as_seen(answer) == expected
        if not reusable and not close and pieces == "bytes":
            return  # what nobody asked for comes later than the next request may: HTTP/1.1 cannot tell them apart
        wire.send(request(target="/after"))
        answer = wire.response()
        assert (answer.status, answer.body) == (200, b"ok")
    assert [message.target for message in fresh.service.requests] == [b"/bad", b"/after"]
    assert fresh.service.accepted == (1 if reusable else 2)


@pytest.mark.parametrize("framing", [CHUNKED + b"\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nX-Sum: 1\r\n\r\n", b"\r\nhello"])
def test_unknown_length_for_http_1_0_ends_with_the_connection(fresh, framing):
    play_response(fresh, OK + framing)
    with fresh.agent.client() as wire:
        wire.send(b"GET /bad HTTP/1.0\r\nConnection: keep-alive\r\n" + HOST + b"\r\n")
        answer = wire.response()
        assert answer.all(b"Transfer-Encoding") == [] and answer.closes and answer.body == b"hello"


@pytest.mark.parametrize("text", [
    b"HTTP/1.1 101 Switching Protocols\r\n\r\nhello",
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\nhello",
])
def test_101_that_does_not_say_to_what(fresh, text):
    play_response(fresh, text)
    with fresh.agent.client() as wire:
        wire.send(request(target="/bad", Connection="Upgrade", Upgrade="websocket"))
        assert wire.response().status == 502


def test_101_before_the_request_is_over(fresh):
    """What would then be the rest of the body, what the other protocol? Refused."""
    def script(wire):
        fresh.service.note(wire.head())
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        wire.to_end()

    fresh.service.script = script
    with fresh.agent.client() as wire:
        wire.send(POST + b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 100\r\n\r\nhello")
        answer = wire.response()
        assert answer.status == 502 and answer.closes, answer
        assert wire.has_ended()


# ---- what is decoded, and sent on as a field ----------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [
    '"Site1\r\nX-Evil: 1"', 'service: Site1, "x\r\nX-Evil: 1": Site1', '{"service":"Site1","x\\r\\nX-Evil: 1":"Site1"}',
    'service: Site1, "x\0y": Site1', "Site1\r\nX-Evil: 1",
])
@pytest.mark.parametrize("carrier", ["path", "baggage"])
def test_a_scope_cannot_break_out_of_its_field(fresh, carrier, scope):
    encoded = urllib.parse.quote(scope, safe="")
    with fresh.agent.client() as wire:
        wire.send(request(target=f"/scope/{encoded}/x") if carrier == "path" else request(baggage=f"cheops.scope={encoded}"))
        assert wire.response().status == 400
    still_in_step(fresh, [])


@pytest.mark.parametrize("carrier", ["path", "baggage"])
def test_line_ends_in_a_scope_are_white_space_and_are_not_sent_on(fresh, carrier):
    encoded = urllib.parse.quote('{"service":\r\n"Site1"}\r\n', safe="")
    with fresh.agent.client() as wire:
        wire.send(request(target=f"/scope/{encoded}/x") if carrier == "path" else request(baggage=f"cheops.scope={encoded}"))
        assert wire.response().status == 200
    assert fresh.service.requests[0].one(b"Scope") == b"service: Site1"
