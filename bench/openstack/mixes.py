"""What is asked on each way: 20 commands of OpenStackClient, and 200 requests."""
import dataclasses

# {name} is another one for each way and round, {file} an image's.
COMMANDS = [
    "token issue",
    "catalog list",
    "project list",
    "user list",
    "endpoint list",
    "image create {name} --disk-format raw --container-format bare --file {file}",
    "image list",
    "image show {name}",
    "image set {name} --property os_distro=debian",
    "flavor list",
    "flavor show m1.tiny",
    "hypervisor list",
    "server create {name} --image {name} --flavor m1.tiny --nic none",
    "server list",
    "server show {name}",
    "server set {name} --property purpose=bench",
    "compute service list",
    "limits show --absolute",
    "server delete {name}",
    "image delete {name}",
]


@dataclasses.dataclass
class Request:
    service: str
    method: str
    path: str
    status: int             # that the answer has to have
    body: object = None     # texts in it are filled in as in the path
    keeps: tuple = ()       # (name, *steps into the answer's JSON): may be used in those that follow


def get(service, *paths):
    return [Request(service, "GET", path, 200) for path in paths]


# A quarter of the 200. Before it there is a new token, as a client would get one.
BLOCK = [
    *get("identity", "/v3", "/v3/auth/catalog", "/v3/projects", "/v3/users", "/v3/roles", "/v3/services",
         "/v3/endpoints", "/v3/domains", "/v3/regions", "/v3/auth/projects", "/v3/role_assignments"),
    *get("compute", "/v2.1/flavors", "/v2.1/flavors/detail", "/v2.1/flavors/1", "/v2.1/limits", "/v2.1/os-availability-zone"),
    Request("image", "POST", "/v2/images", 201, {"name": "{name}", "disk_format": "raw", "container_format": "bare"},
            ("image", "id")),
    Request("image", "PUT", "/v2/images/{image}/file", 204, b"i" * 65536),
    *get("image", "/v2/images/{image}", "/v2/images", "/v2/images?name={name}", "/v2/schemas/image"),
    Request("image", "PATCH", "/v2/images/{image}", 200, [{"op": "add", "path": "/os_distro", "value": "debian"}]),
    Request("image", "PUT", "/v2/images/{image}/tags/bench", 204),
    *get("image", "/v2/images/{image}/file", "/v2/images?tag=bench"),
    Request("compute", "POST", "/v2.1/servers", 202, {"server": {"name": "{name}", "imageRef": "{image}", "flavorRef": "1",
                                                                  "networks": "none"}}, ("server", "server", "id")),
    *get("compute", "/v2.1/servers/{server}", "/v2.1/servers", "/v2.1/servers/detail", "/v2.1/os-keypairs",
         "/v2.1/os-hypervisors", "/v2.1/os-services", "/v2.1/os-server-groups"),
    Request("placement", "GET", "/resource_providers", 200, keeps=("provider", "resource_providers", 0, "uuid")),
    *get("placement", "/resource_providers/{provider}", "/resource_providers/{provider}/inventories",
         "/resource_providers/{provider}/usages", "/resource_providers/{provider}/traits", "/resource_classes", "/traits",
         "/allocation_candidates?resources=VCPU:1,MEMORY_MB:64,DISK_GB:1"),
    *get("image", "/v2/images?limit=5", "/v2/schemas/images"),
    *get("compute", "/v2.1/servers?name={name}", "/v2.1/servers/{server}/metadata", "/v2.1/servers/{server}/os-instance-actions"),
    Request("compute", "DELETE", "/v2.1/servers/{server}", 204),
    Request("image", "DELETE", "/v2/images/{image}", 204),
]
PIECES = 4      # of both: so many blocks, and the commands in so many parts
REQUESTS = PIECES * (len(BLOCK) + 1)    # one more for the token


def commands_of(piece):
    count = len(COMMANDS) // PIECES
    return COMMANDS[piece * count:(piece + 1) * count]


def filled(value, names):
    if isinstance(value, str):
        return value.format(**names)
    if isinstance(value, dict):
        return {key: filled(inner, names) for key, inner in value.items()}
    return value


def content_type(request):
    """Headers for bodies that are not plain JSON."""
    if request.method == "PATCH":
        return {"Content-Type": "application/openstack-images-v2.1-json-patch"}
    return {"Content-Type": "application/octet-stream"} if isinstance(request.body, bytes) else {}


def keep(request, answer, names):
    """What later requests name, from the answer to this one."""
    name, *steps = request.keeps
    value = answer.json
    for step in steps:
        value = value[step]
    names[name] = value
