"""A service with the manners of Kubernetes, as far as these tests need them: objects named by their users within a namespace, versions
that a change may insist on, names that it makes itself when it is asked to. It keeps every request, as it came."""
import copy
import json
import secrets
import uuid

from played_service import PlayedService


def merged(target, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made


class Refused(Exception):
    def __init__(self, code, reason):
        super().__init__(reason)
        self.status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}


class Objects(PlayedService):
    def __init__(self):
        self.stored = {}
        self.version = 100
        self.requests = []
        self.silent = 0  # changes that get no answer
        super().__init__()

    def serve(self, handler, body):
        with self.lock:
            self.requests.append((handler.command, handler.path, dict(handler.headers), body))
            if self.silent > 0 and handler.command != "GET":
                self.silent -= 1
                handler.close_connection = True
                return
            try:
                handler.answer(*self.handle(handler.command, handler.path, handler.headers, body))
            except Refused as refused:
                handler.answer(refused.status["code"], refused.status)

    # ---- for tests

    def get(self, path):
        with self.lock:
            return copy.deepcopy(self.stored.get(path))

    def names(self, collection):
        with self.lock:
            return sorted(path.rpartition("/")[2] for path in self.stored if path.rpartition("/")[0] == collection)

    def asked(self, method, path=None):
        """The bodies of such requests."""
        with self.lock:
            return [body for each, target, _, body in self.requests if each == method and path in (None, target)]

    def headers_of(self, method, path):
        with self.lock:
            return [headers for each, target, headers, _ in self.requests if each == method and target == path]

    # ---- what it does

    def put(self, path, made):
        self.version += 1
        made["metadata"]["resourceVersion"] = str(self.version)
        self.stored[path] = made
        return made

    def check(self, there, asked):
        for name in ("uid", "resourceVersion"):
            wanted = (asked or {}).get(name)
            if wanted is not None and wanted != there["metadata"][name]:
                raise Refused(409, "Conflict")

    def create(self, path, body):
        made = json.loads(body)
        metadata = made.setdefault("metadata", {})
        if metadata.get("resourceVersion"):
            raise Refused(400, "BadRequest")
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + secrets.token_hex(3)
        if not metadata.get("name"):
            raise Refused(422, "Invalid")
        if f"{path}/{metadata['name']}" in self.stored:
            raise Refused(409, "AlreadyExists")
        namespace = path.rpartition("/namespaces/")[2].partition("/")[0] if "/namespaces/" in path else None
        if namespace and f"/api/v1/namespaces/{namespace}" not in self.stored:
            raise Refused(404, "NotFound")
        metadata["uid"] = str(uuid.uuid4())
        return 201, self.put(f"{path}/{metadata['name']}", made)

    def of_all_namespaces(self, kind):
        for path, made in sorted(self.stored.items()):
            parts = path.split("/")
            if parts[3] == "namespaces" and len(parts) == 7 and parts[5] == kind:
                yield {**made, "metadata": {**made["metadata"], "namespace": parts[4]}}

    def handle(self, method, target, headers, body):
        path = target.partition("?")[0]
        if method == "POST":
            return self.create(path, body)
        if method == "GET" and path not in self.stored and any(each.startswith(path + "/") for each in self.stored):
            return 200, {"kind": "List", "items": [made for each, made in sorted(self.stored.items())
                                                   if each.rpartition("/")[0] == path]}
        if method == "GET" and path.count("/") == 3 and path not in self.stored and path != "/api/v1/namespaces":
            return 200, {"kind": "List", "items": list(self.of_all_namespaces(path.rpartition("/")[2]))}
        if method == "PATCH" and "apply-patch" in headers.get("Content-Type", "") and path not in self.stored:
            made = {**json.loads(body)}  # what is JSON is YAML
            made["metadata"] = {**made.get("metadata", {}), "name": path.rpartition("/")[2], "uid": str(uuid.uuid4())}
            return 201, self.put(path, made)
        if path not in self.stored:
            raise Refused(404, "NotFound")
        there = self.stored[path]
        etag = headers.get("If-Match")
        if method != "GET" and etag is not None and etag != '"' + there["metadata"]["resourceVersion"] + '"':
            raise Refused(412, "PreconditionFailed")
        if method == "GET":
            return 200, there
        if method == "DELETE":
            self.check(there, (json.loads(body) if body else {}).get("preconditions"))
            return 200, self.stored.pop(path)
        asked = json.loads(body)
        self.check(there, asked.get("metadata"))
        made = merged(there, asked) if method == "PATCH" else asked
        made.setdefault("metadata", {})["name"] = there["metadata"]["name"]
        made["metadata"]["uid"] = there["metadata"]["uid"]
        return 200, self.put(path, made)
