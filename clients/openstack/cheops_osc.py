"""A plugin of OpenStackClient: `openstack --scope '{compute: Site1, image: Site2}' server create ...`.

`--scope` may stand before or behind the command; `--os-scope` is the same, and so is OS_SCOPE in the environment, which the
options outweigh. The scope goes into the header `Scope` of the requests that the command makes. An agent of Cheops takes it from
there; whoever is no agent ignores it.

Log-in goes without: it is about the client alone, and asked of the site where that is, whatever the scope says. Which versions a
service has is asked of the sites of the scope; where these are several (`&`), all answer, and the client is shown the first.

OpenStackClient has no way for a plugin to add a header. All of its libraries send their requests through sessions of keystoneauth,
which in turn use adapters of requests, which can be put around each other: so sessions that are made while a scope is chosen get one
more around theirs. In this process, and nowhere else.
"""
import argparse
import functools
import json
import logging
import os
import re
import urllib.parse

from keystoneauth1 import session
from requests import adapters

# What OpenStackClient asks of a plugin: the name of an API, and how a client of it is made. There is none.
API_NAME = "cheops"
API_VERSION_OPTION = "os_cheops_api_version"
API_VERSIONS = {"1": "cheops_osc.make_client"}
DEFAULT_API_VERSION = "1"

ENVIRONMENT = "OS_SCOPE"
LONGEST_BYTES = 4096  # as agents have it
LOG = logging.getLogger(__name__)
LOG_IN = re.compile(r"(/[a-z-]+)?/v3(/auth/.*)?")
VERSIONS = re.compile(r"(/[a-z-]+)?(/v[0-9.]+)?/?")  # /, /v2.1/, /image/v2


def make_client(_):
    return None


def check(text):
    """The scope, or an error that says what is wrong with it."""
    text = text.strip()
    if len(text.encode()) > LONGEST_BYTES:
        raise argparse.ArgumentTypeError(f"a scope has at most {LONGEST_BYTES} bytes, and this one has {len(text.encode())}")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise argparse.ArgumentTypeError("there is a control character in the scope, such as the end of a line; leave it out")
    return text


class Chosen:
    """The scope of this command."""
    scope = None  # None: no option was given


class Choose(argparse.Action):
    """Keeps the value to itself: OpenStackClient takes braces in an option for a template."""

    def __call__(self, parser, namespace, value, option=None):
        Chosen.scope = value


def scope():
    if Chosen.scope is not None:
        return Chosen.scope
    try:
        return check(os.environ.get(ENVIRONMENT, ""))
    except argparse.ArgumentTypeError as error:
        raise SystemExit(f"openstack: {ENVIRONMENT}: {error}") from None


# ---- answers --------------------------------------------------------------------------------------------------------------


def explain_header(response):
    """The same, told in the form of the service, of which the header says that it is not the service's own."""
    told = dict(re.findall(r'; (title|detail)="((?:[^"\\]|\\.)*)"', response.headers.get("Cheops-Problem", "")))
    return ": ".join(re.sub(r"\\(.)", r"\1", told[part]) for part in ("title", "detail") if part in told) or None


def explain(response):
    """What an agent itself says of a request that it could not carry out. None: this is an answer of OpenStack."""
    if not response.headers.get("Content-Type", "").startswith("application/problem+json"):
        return None
    try:
        told = json.loads(response.content)
        return f"{told.get('title', 'Cheops')}: {told.get('detail', 'it does not say why')}"
    except (ValueError, AttributeError):
        return None


def understood(response, request):
    """OpenStack's libraries know the errors of their services only, each in another form, and OpenStackClient asks Nova for some things
    without the library that knows Nova's. So what an agent has to say, in the form of the service or in its own, is told in a form that
    all of them read: that of Keystone. Why versions could not be asked for is told by none of them: so it is told here."""
    said = explain(response) or explain_header(response)
    if said is None:
        return response
    if VERSIONS.fullmatch(urllib.parse.urlsplit(request.url).path):
        warn_once(said)
    response._content = json.dumps({"error": {"code": response.status_code, "message": said}}).encode()
    response.headers["Content-Type"] = "application/json"
    return response


def first_of(response, request):
    """Documents about versions, of several sites, come side by side (docs/aggregation.md). They say the same at each, since sites
    whose versions do not fit are not used together: so one of them does."""
    path = urllib.parse.urlsplit(request.url).path
    if response.status_code != 207 or request.method != "GET" or not VERSIONS.fullmatch(path):
        return response
    try:
        answers = [one for one in json.loads(response.content).values() if one.get("status", 500) < 400 and "body" in one]
    except (ValueError, AttributeError):
        return response
    if answers:
        response.status_code = answers[0]["status"]
        response._content = json.dumps(answers[0]["body"]).encode()
        response.headers["Content-Type"] = "application/json"
    return response


def warn(response):
    """A list that is not whole says so in a header, which none of the libraries looks at."""
    partial = response.headers.get("Cheops-Partial")
    if partial:
        warn_once(f"the answer is not whole: {partial}")


@functools.lru_cache(maxsize=None)
def warn_once(text):
    LOG.warning("%s", text)


# ---- requests -------------------------------------------------------------------------------------------------------------


class Scoped(adapters.BaseAdapter):
    """Puts the scope on what another adapter then sends."""

    def __init__(self, inner, chosen):
        super().__init__()
        self.inner = inner
        self.chosen = chosen

    def send(self, request, *arguments, **options):
        if not LOG_IN.fullmatch(urllib.parse.urlsplit(request.url).path):
            request.headers["Scope"] = self.chosen.encode()
            LOG.debug("%s %s with the scope %s", request.method, request.url, self.chosen)
        response = self.inner.send(request, *arguments, **options)
        warn(response)
        return understood(first_of(response, request), request)

    def close(self):
        self.inner.close()


def give_scope(made):
    chosen = scope()
    if not chosen:
        return
    for prefix, inner in list(made.session.adapters.items()):
        if not isinstance(inner, Scoped):
            made.session.mount(prefix, Scoped(inner, chosen))


def build_option_parser(parser):
    parser.add_argument("--scope", "--os-scope", dest="cheops_scope", default=argparse.SUPPRESS, metavar="<scope>", type=check,
                        action=Choose, help="at which site each service is used, such as '{compute: Site1, image: Site2}' "
                        "(Env: OS_SCOPE)")
    plain = session.Session.__init__

    @functools.wraps(plain)
    def with_scope(self, *arguments, **options):
        plain(self, *arguments, **options)
        give_scope(self)

    session.Session.__init__ = with_scope
    return parser
