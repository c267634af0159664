"""What the network is to be like: a YAML file, or a number of sites that are all equally far from each other.

    sites:                       # in order: the first one is 10.77.0.1
      Site1: {city: Rennes, coordinates: [48.11, -1.68], region: west}     # what is in here is for people and tests
      Site2:
    default: {rtt: 10ms}         # between any two
    pairs:                       # in order: what comes later wins
      Site1<>Site2: {delay: 5ms, loss: 1%}
      Site2>Site1: {jitter: 1ms}

The values are those of `set`; `rtt` stands for half of it as the delay of each way.
"""
import pathlib
import re

import yaml

from .errors import LabError

KEYS = ("delay", "jitter", "loss", "duplicate", "reorder", "reorder_by", "rate", "queue")
SITES_MAX = 200
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "matrices"
RTT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s)")


class Matrix:
    def __init__(self, sites, rules):
        self.sites = sites  # {name: what the file says of it}
        self.rules = rules  # [(pair, {key: value})], in the order in which they are to be set

    def first(self, count):
        """The same with the first sites only."""
        if not 1 <= count <= len(self.sites):
            raise LabError(f"{count} sites are asked for, and the matrix has {len(self.sites)}")
        names = list(self.sites)[:count]
        rules = [(pair, keys) for pair, keys in self.rules if all(name in (*names, "*") for name in split_pair(pair))]
        return Matrix({name: self.sites[name] for name in names}, rules)


def split_pair(pair):
    """(from, to) of `A>B` or `A<>B`."""
    left, _, right = pair.partition("<>" if "<>" in pair else ">")
    return left, right


def flat(count):
    if not 1 <= count <= SITES_MAX:
        raise LabError(f"{count} sites; there can be 1 to {SITES_MAX}")
    return Matrix({f"Site{number}": {} for number in range(1, count + 1)}, [("*<>*", {"delay": "5ms"})])


def find(text):
    """The path of a matrix, which may be named as one of those that come along: `europe20`."""
    path = pathlib.Path(text)
    shipped = FOLDER / f"{text}.yaml"
    if path.exists() or not shipped.exists():
        return path
    return shipped


def read(path):
    try:
        made = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        shipped = ", ".join(sorted(known.stem for known in FOLDER.glob("*.yaml")))
        raise LabError(f"cannot read {path}: {error.strerror}; these matrices come along: {shipped}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LabError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    try:
        return understand(made)
    except LabError as error:
        raise LabError(f"{path}: {error}") from None


def understand(made):
    check_keys(made, "a matrix", ("sites", "default", "pairs"))
    sites = read_sites(made.get("sites"))
    rules = [("*<>*", read_rules("default", made.get("default") or {"delay": "0"}))]
    pairs = made.get("pairs") or {}
    check_keys(pairs, "pairs", None)
    for pair, keys in pairs.items():
        names = split_pair(str(pair))
        unknown = [name for name in names if name not in sites and name != "*"]
        if unknown or names[0] == names[1] != "*":
            raise LabError(f"pairs: '{pair}' is no pair of two of the sites, such as {' '.join(list(sites)[:1])}<>"
                           f"{list(sites)[-1]}")
        rules.append((pair, read_rules(pair, keys)))
    return Matrix(sites, rules)


def check_keys(made, what, known):
    if not isinstance(made, dict):
        raise LabError(f"{what} has to be a mapping, and is: {made!r}")
    for key in made:
        if known is not None and key not in known:
            raise LabError(f"{what} has no key '{key}'; the keys are: {', '.join(known)}")


def read_sites(sites):
    if isinstance(sites, list):
        sites = {name: {} for name in sites}
    if not isinstance(sites, dict) or not 1 <= len(sites) <= SITES_MAX:
        raise LabError(f"sites has to be a mapping of names, or a list of them, with 1 to {SITES_MAX} of them")
    for name, about in sites.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise LabError(f"sites: {name!r} is no name: letters, digits and _.- are allowed, and 32 of them at the most")
        if not isinstance(about, (dict, type(None))):
            raise LabError(f"sites: {name} has to be a mapping or nothing, and is: {about!r}")
    return {name: about or {} for name, about in sites.items()}


def read_rules(where, keys):
    check_keys(keys, where, ("rtt", *KEYS))
    rules = {key: str(value) for key, value in keys.items() if key != "rtt"}
    if "rtt" in keys:
        match = RTT.fullmatch(str(keys["rtt"]))
        if not match or (">" in where and "<>" not in where) or "delay" in keys:
            raise LabError(f"{where}: rtt is a duration such as 10ms, for both ways (A<>B), and without a delay")
        rules["delay"] = f"{float(match.group(1)) / 2:.6f}{match.group(2)}"
    for key, value in rules.items():
        if not re.fullmatch(r"[!-~]+", value):
            raise LabError(f"{where}: {key} is {value!r}")
    return rules
