"""The file of --view: what it may say, and what is said about each way to get it wrong."""
import os

import pytest

TWO = "sites: {Site1: , Site2: }\n"


@pytest.fixture
def explain(cheops, tmp_path):
    """Writes a view and explains a scope with it."""
    def run(content, text="Site1", *arguments):
        (tmp_path / "v.yaml").write_bytes(content.encode() if isinstance(content, str) else content)
        return cheops.scope("explain", "--view", "v.yaml", *arguments, text, cwd=tmp_path)
    return run


# ---- what is accepted -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [
    "sites: {Site1: }",
    "sites:\n  Site1:\n",
    "sites:\n  Site1: ~\n  Site2: null\n  Site3: {}\n",
    "---\nsites: {Site1: {state: present}}\n...\n",
    "# a comment\nsites: {Site1: {tags: }}\nrtt_ms:\nservices:\n",
    '{"sites": {"Site1": {"state": "absent", "since": "2024-05-01T12:00:00+02:00"}}}',
    "services: {compute: }\nrtt_ms: {Site1: }\nsites: {Site1: }\n",
    "sites: {Site1: {since: 2024-05-01T12:00:00.5Z}}",
    "\ufeffsites: {Site1: }\n",
    "sites: {Site1: }\r\nrtt_ms: {Site1: {Site1: 0}}\r\n",
    "sites: {'a b': {tags: {'c d': 'e f', n: 3, yes: true}}, Site1: }",
])
def test_fine(explain, content):
    result = explain(content)
    assert result.status == 0 and result.err == "", result


def test_round_trips_count_both_ways(explain):
    view = TWO + "rtt_ms: {Site1: {Site2: 8}}\n"
    assert explain(view, "Site2", "--at", "Site1", "-o", "json").json["latency_ms"] == 8
    assert explain(view, "Site1", "--at", "Site2", "-o", "json").json["latency_ms"] == 8


def test_round_trips_may_differ_by_direction(explain):
    view = TWO + "rtt_ms: {Site1: {Site2: 8}, Site2: {Site1: 12.5}}\n"
    assert explain(view, "Site2", "--at", "Site1", "-o", "json").json["latency_ms"] == 8
    assert explain(view, "Site1", "--at", "Site2", "-o", "json").json["latency_ms"] == 12.5


@pytest.mark.parametrize("written, ms", [
    ("0", 0), ("8", 8), ("25.0", 25), ("0.35", 0.35), ("0.001", 0.001), ("0.0004", 0), ("0.0005", 0.001), ("'7'", 7),
    ("1.2345678901234567890", 1.235), ("3600000", 3600000), ("007", 7),
])
def test_numbers_of_round_trips(explain, written, ms):
    view = TWO + "rtt_ms: {Site1: {Site2: %s}}\n" % written
    assert explain(view, "Site2", "-o", "json").json["latency_ms"] == ms


def test_states_and_times(explain):
    result = explain("sites:\n  Site1:\n  Site2: {state: absent, since: 2024-05-01T14:00:00.250+02:00}\n"
                     "  Site3: {state: unknown}\n", "Site2; Site3; Site1")
    assert result.out.splitlines()[2:] == [
        "├─ Site2 (distance unknown, absent since 2024-05-01T12:00:00.250Z)",
        "├─ Site3 (distance unknown, unknown)", "└─ Site1 (here)"]


def test_versions_are_text_whatever_they_look_like(explain):
    view = "sites: {Site1: , Site2: , Site3: }\nservices: {s: {Site1: 2.10, Site2: 10, Site3: }}\n"
    refused = explain(view, "s: Site1 & Site2")
    assert refused.status == 1 and "2.10" in refused.err and "10" in refused.err
    assert explain(view, "s: Site1 & Site3").status == 0


def test_aliases(explain):
    result = explain("sites:\n  Site1: {tags: &west {region: west}}\n  Site2: {tags: *west}\n", "tagged(region=west)",
                     "-o", "json")
    assert [step["site"] for step in result.json["plan"]["of"]] == ["Site1", "Site2"]


def test_names_are_free(explain):
    view = "sites: {état: , 'null': , 'true': , '3': , all: , 'a\"b': }\n"
    for text in ('"état"', "null", "true", '"3"', '"all"', '"a\\"b"'):
        assert explain(view, text).status == 0


def test_from_a_pipe(cheops):
    assert cheops.shell('"$CHEOPS" scope explain --view <(echo "sites: {Site1: }") Site1').status == 0


# ---- what is refused ------------------------------------------------------------------------------------------------

AT_LEAST = "a view has at least one site, such as `sites: {Site1: {}}`"


@pytest.mark.parametrize("content, said", [
    # the whole
    ("", "1:1: the file is empty; " + AT_LEAST),
    ("# nothing\n", "1:1: the file is empty; " + AT_LEAST),
    ("null\n", "1:1: the file is empty; a view is a mapping with the keys `sites`, `rtt_ms` and `services`"),
    ("Site1\n", "1:1: the file is a single value; a view is a mapping"),
    ("[Site1]\n", "1:1: the file is a list; a view is a mapping"),
    ("{}\n", "1:1: there is no `sites`; " + AT_LEAST),
    ("rtt_ms: {}\n", "1:1: there is no `sites`; " + AT_LEAST),
    (TWO + "site: {}\n",
     "2:1: unknown key `site`: accepted are `sites`, `rtt_ms` and `services`; did you mean `sites`?"),
    (TWO + "zork: {}\n", "2:1: unknown key `zork`: accepted are `sites`, `rtt_ms` and `services`\n"),
    (TWO + TWO, "2:1: `sites` is here for the second time; the first is in line 1"),
    (TWO + "---\n" + TWO, "2:1: a second document begins here; a view file has one"),
    # YAML
    ("sites: {Site1: \n", "2:1: not valid YAML: while parsing a flow node, did not find expected node content"),
    ("sites:\n\tSite1:\n", "2:1: not valid YAML: while scanning for the next token, found character"),
    (b"sites:\n  \xff: \n", "2:3: not valid YAML: invalid leading UTF-8 octet"),
    (b"sites:\n  Site\x00: \n", "2:7: not valid YAML: control characters are not allowed"),
    ("sites: {Site1: *nobody}\n", "1:16: not valid YAML: found undefined alias"),
    ("sites: {Site1: &a {}, Site2: &a {}}\n", "not valid YAML: found duplicate anchor"),
    # sites
    ("sites:\n", "1:7: `sites` is empty; " + AT_LEAST),
    ("sites: {}\n", "1:8: `sites` is empty; " + AT_LEAST),
    ("sites: [Site1]\n", "1:8: `sites` is a list; it has to be a mapping, such as `sites: {Site1: {state: present}}`"),
    ("sites: {Site1: up}\n",
     "1:16: `Site1` is a single value; it has to be a mapping, such as `Site1: {state: present}`"),
    ("sites:\n  Site1:\n  Site1:\n", "3:3: `Site1` is here for the second time; the first is in line 2"),
    ('sites: {"": {}}\n', "1:9: a key of `sites` is empty; keys have to be names"),
    ("sites: {[a]: {}}\n", "1:9: a key of `sites` is a list; keys have to be names"),
    ("sites: {{a: b}: {}}\n", "1:9: a key of `sites` is a mapping; keys have to be names"),
    ('sites: {"a\\eb": {}}\n', "1:9: `a\ufffdb` contains a control character; only printable text is accepted"),
    ('sites: {"a\\0b": {}}\n', "1:9: `a` contains a control character"),
    ("sites: {Site1: {stat: absent}}\n",
     "1:17: unknown key `stat`: accepted are `state`, `since` and `tags`; did you mean `state`?"),
    ("sites: {Site1: {<<: {state: absent}}}\n", "1:17: unknown key `<<`: accepted are `state`, `since` and `tags`"),
    ("sites: {Site1: {state: up, state: down}}\n", "1:28: `state` is here for the second time; the first is in line 1"),
    ("sites: {Site1: {state: presnt}}\n",
     "1:24: unknown state `presnt`: accepted are `present`, `absent` and `unknown`; did you mean `present`?"),
    ("sites: {Site1: {state: }}\n", "1:24: `state` is empty; it has to be one of `present`, `absent` and `unknown`"),
    ("sites: {Site1: {state: [absent]}}\n", "1:24: `state` is a list; it has to be one of `present`,"),
    ("sites: {Site1: {since: yesterday}}\n",
     "1:24: `yesterday` is not a time; write it as RFC 3339 does: 2024-05-01T12:00:00Z"),
    ("sites: {Site1: {since: 2024-05-01}}\n", "1:24: `2024-05-01` is not a time"),
    ("sites: {Site1: {since: 2024-02-30T12:00:00Z}}\n", "1:24: `2024-02-30T12:00:00Z` is not a time"),
    ("sites: {Site1: {since: {}}}\n", "1:24: `since` is a mapping; it has to be a time, such as 2024-05-01T12:00:00Z"),
    ("sites: {Site1: {tags: west}}\n",
     "1:23: `tags` is a single value; it has to be a mapping, such as `tags: {region: west}`"),
    ("sites: {Site1: {tags: {region: }}}\n", "1:32: `region` is empty; it has to be a single value, as in `region: west`"),
    ("sites: {Site1: {tags: {region: ''}}}\n", "1:32: `region` is empty; it has to be a single value"),
    ("sites: {Site1: {tags: {region: [a, b]}}}\n", "1:32: `region` is a list; it has to be a single value"),
    ("sites: {Site1: {tags: {region: a, region: b}}}\n", "1:35: `region` is here for the second time"),
    ('sites: {Site1: {tags: {region: "\\a"}}}\n', "1:32: `\ufffd` contains a control character"),
    # round trips
    (TWO + "rtt_ms: 8\n", "2:9: `rtt_ms` is a single value; it has to be a mapping, such as `rtt_ms: {Site1: {Site2: 8}}`"),
    (TWO + "rtt_ms: {Site1: 8}\n", "2:17: `Site1` is a single value; it has to be a mapping, such as `Site1: {Site2: 8}`"),
    (TWO + "rtt_ms: {Sit1: {Site2: 8}}\n",
     "2:10: `rtt_ms` names `Sit1`, which is not under `sites`; did you mean `Site1`?"),
    (TWO + "rtt_ms: {Site1: {Elsewhere: 8}}\n", "2:18: `rtt_ms` names `Elsewhere`, which is not under `sites`\n"),
    (TWO + "rtt_ms: {Site1: {Site2: 8, Site2: 9}}\n", "2:28: `Site2` is here for the second time; the first is in line 2"),
    (TWO + "rtt_ms: {Site1: {Site2: [8]}}\n", "2:25: `Site2` is a list; it has to be a number of ms, such as 8 or 0.35"),
    (TWO + "rtt_ms: {Site1: {Site2: }}\n", "2:25: `Site2` is empty; it has to be a number of ms, such as 8 or 0.35"),
    (TWO + "rtt_ms: {Site1: {Site1: 3}}\n", "2:25: the round trip from `Site1` to itself is `3`; it can only be 0, or left out"),
    # services
    (TWO + "services: [compute]\n",
     '2:11: `services` is a list; it has to be a mapping, such as `services: {compute: {Site1: "2.1"}}`'),
    (TWO + "services: {compute: [Site1]}\n",
     '2:21: `compute` is a list; it has to be a mapping, such as `compute: {Site1: "2.1"}`'),
    (TWO + "services: {compute: {Sit1: 2}}\n",
     "2:22: `services` names `Sit1`, which is not under `sites`; did you mean `Site1`?"),
    (TWO + "services: {compute: {Site1: {}}}\n",
     '2:29: `Site1` is a mapping; it has to be a version, such as "2.1", or empty'),
    (TWO + "services: {compute: {Site1: 1, Site1: 2}}\n", "2:32: `Site1` is here for the second time"),
    (TWO + "services: {compute: , compute: }\n", "2:23: `compute` is here for the second time"),
])
def test_refused(explain, content, said):
    result = explain(content)
    assert result.status == 2 and result.out == ""
    assert result.err.startswith("cheops: v.yaml:") and result.err.count("\n") == 1
    assert said in result.err, result


@pytest.mark.parametrize("written", [
    "-1", "-0.5", ".nan", ".inf", "-.inf", "nan", "8ms", "1e3", "0x10", "1,5", ".5", "5.", "1.2.3", "3600000.001", "3600001",
    "99999999999999999999999999", "'8 '", "eight",
])
def test_refused_round_trips(explain, written):
    result = explain(TWO + "rtt_ms:\n  Site1:\n    Site2: %s\n" % written)
    assert result.status == 2
    assert (f"the round trip from `Site1` to `Site2` is `{written.strip(chr(39))}`; "
            "it has to be a number of ms from 0 to 3600000, such as 8 or 0.35") in result.err


def test_a_refused_file_is_told_before_the_scope_is_looked_at(explain):
    assert explain("", "((((").status == 2
    assert explain("", "((((", "-o", "json").out == ""


# ---- files ----------------------------------------------------------------------------------------------------------


def test_files_that_cannot_be_read(cheops, tmp_path):
    explain = ["explain", "--view"]
    assert cheops.scope(*explain, "none.yaml", "Site1", cwd=tmp_path).err == \
        "cheops: cannot read `none.yaml`: No such file or directory\n"
    assert cheops.scope(*explain, ".", "Site1", cwd=tmp_path).err == "cheops: cannot read `.`: Is a directory\n"
    assert cheops.scope(*explain, "", "Site1").status == 2
    if os.geteuid() != 0:  # root may read all
        (tmp_path / "secret.yaml").touch(mode=0)
        assert "Permission denied" in cheops.scope(*explain, "secret.yaml", "Site1", cwd=tmp_path).err


def test_a_long_path_does_not_push_the_reason_out(cheops):
    result = cheops.scope("explain", "--view", "/" + 3000 * "x" + "/v.yaml", "Site1")
    assert result.status == 2 and "/v.yaml`: " in result.err and len(result.err) < 300


# ---- size and shape that are meant to hurt --------------------------------------------------------------------------

LIMIT_BYTES = 1 << 20


def test_too_big(explain, cheops):
    content = "sites: {Site1: }\n"
    exactly = content + "#" * (LIMIT_BYTES - len(content))
    assert explain(exactly).status == 0
    result = explain(exactly + "#")
    assert result.status == 2
    assert result.err == f"cheops: `v.yaml` is longer than {LIMIT_BYTES} bytes, the limit of a view file\n"
    assert cheops.scope("explain", "--view", "/dev/zero", "Site1").status == 2


def sites(count):
    return "sites:\n" + "".join(f"  Site{i}:\n" for i in range(count))


def test_a_thousand_sites(explain):
    view = sites(1000) + "rtt_ms:\n  Site0: {%s}\n" % ", ".join(f"Site{i}: {i}" for i in range(1, 1000))
    nearest = explain(view, "nearest(3)", "--at", "Site500", "-o", "json")
    assert nearest.status == 0 and nearest.json["plan"]["of"][0] == {"op": "one", "site": "Site500"}
    around = explain(view, "around(Site0, 4ms)", "-o", "json").json["plan"]["of"]
    assert [step["site"] for step in around] == ["Site0", "Site1", "Site2", "Site3", "Site4"]
    assert explain(view, "all()", "-o", "json").json["error"]["type"] == "too-many-sites"


def test_one_site_too_many(explain):
    result = explain(sites(1001))
    assert result.status == 2 and "2:3: 1001 sites; the limit of a view is 1000" in result.err


def test_one_service_too_many(explain):
    result = explain(TWO + "services: {%s}\n" % ", ".join(f"s{i}: " for i in range(257)))
    assert result.status == 2 and "257 services; the limit of a view is 256" in result.err


@pytest.mark.parametrize("unit", ["[", "{", "{a: ", "- ", "? ", "[a, ", "[&a "])
def test_deep_nesting(explain, unit):
    result = explain(unit * (LIMIT_BYTES // len(unit)))
    assert result.status == 2 and "nested too deeply" in result.err


@pytest.mark.parametrize("unit", ["a", '"', "a: ", "\n", "-\n -\n", "a: &b *c\n", "%TAG ! a\n", "\0", "|\n"])
def test_other_large_files(explain, unit):
    assert explain(unit * (LIMIT_BYTES // len(unit))).status == 2


def test_many_anchors(explain):
    result = explain("sites:\n" + "".join(f"  S{i}: &a{i}\n" for i in range(50000)))
    assert result.status == 2 and "more than 1000 anchors" in result.err


def test_aliases_that_loop(explain):
    assert "unknown key" in explain("sites: &a {Site1: *a}\n").err
    assert explain("&a {sites: *a}\n").status == 2
    assert explain("sites: {Site1: {tags: &t {t: *t}}}\n").status == 2


def test_aliases_that_multiply(explain):
    view = sites(1000) + "rtt_ms:\n  Site0: &row {%s}\n" % ", ".join(f"Site{i}: 0" for i in range(1000)) + \
        "".join(f"  Site{i}: *row\n" for i in range(1, 1000))
    result = explain(view, "Site1")
    assert result.status == 2 and "aliases make this more than 262144 entries" in result.err
