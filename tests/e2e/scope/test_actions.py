"""What each action prints, for people and for programs."""
import pytest

# ---- fmt ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, canonical", [
    ("{Site1&Site2;Site3}", "Site1 & Site2; Site3"),
    ('{"compute": "Site1", "image": "Site2&Site3"}', "compute: Site1, image: Site2 & Site3"),
    ("ServiceB/Site2", "ServiceB: Site2"),
    ("  ( ( Site1 ) )  ", "Site1"),
    ('"DC 1" & "Site2"', '"DC 1" & Site2'),
    ("around(Site1,10ms)", "around(Site1, 10ms)"),
])
def test_fmt(cheops, text, canonical):
    result = cheops.scope("fmt", text)
    assert (result.status, result.out, result.err) == (0, canonical + "\n", "")
    assert cheops.scope("fmt", "-o", "json", text).json == {"scope": canonical}
    assert cheops.scope("fmt", canonical).out == canonical + "\n"


def test_fmt_with_a_service_gives_the_form_that_travels(cheops):
    result = cheops.scope("fmt", "--service", "compute", "Site1, image: Site2")
    assert result.out == "compute: Site1, image: Site2\n"


def test_fmt_does_not_ask_for_a_meaning(cheops):
    assert cheops.scope("fmt", "strong(Site1; Site2)").status == 0


# ---- check ----------------------------------------------------------------------------------------------------------


def test_check_says_ok(cheops):
    result = cheops.scope("check", "Site1&Site2")
    assert (result.status, result.out, result.err) == (0, "ok\n", "")
    assert cheops.scope("check", "-o", "json", "Site1&Site2").json == {
        "ok": True, "scope": "Site1 & Site2", "warnings": []}


def test_check_warns_on_standard_output_after_the_ok(cheops):
    result = cheops.scope("check", "Site1; Site1")
    assert result.status == 0 and result.err == ""
    assert result.out.startswith("ok\nwarning: `Site1` stands twice")
    answer = cheops.scope("check", "-o", "json", "Site1; Site1").json
    assert answer["ok"] is True and len(answer["warnings"]) == 1


def test_check_refuses_what_has_no_meaning(cheops):
    result = cheops.scope("check", "strong(Site1; Site2)")
    assert result.status == 1 and result.out == ""
    assert result.err.startswith("cheops: ") and "strong(Site1; Site2)" in result.err and "^^^" in result.err


@pytest.mark.parametrize("text, kind", [
    ("Site1 & Sit2", "unknown-site"),
    ("compute: Site1, imgae: Site2", "unknown-service"),
    ("compute: Site1 & \"DC 4\"", "version-mismatch"),
    ("image: Site1, compute: Sit2", "unknown-site"),
])
def test_check_with_a_view_makes_every_entry_s_plan(cheops, view, text, kind):
    assert cheops.scope("check", text).status == 0
    result = cheops.scope("check", "--view", view, "-o", "json", text)
    assert result.status == 1 and result.json["error"]["type"] == kind


def test_check_with_a_view_and_a_service(cheops, view):
    text = 'Site1 & "DC 4"'  # of no service in particular: versions cannot clash
    assert cheops.scope("check", "--view", view, text).status == 0
    assert cheops.scope("check", "--view", view, "--service", "compute", text).status == 1
    both = cheops.scope("check", "--view", view, "--service", "compute", "-o", "json", "compute: Site1, Site2")
    assert both.status == 1 and both.json["error"]["type"] == "ambiguous-service"


def test_check_collects_the_warnings_of_all_plans(cheops, view):
    result = cheops.scope("check", "--view", view, "compute: Site1, image: Site3; Site3")
    assert result.status == 0
    warnings = result.out.splitlines()[1:]
    assert len(warnings) == len(set(warnings)) == 2
    assert any("`Site3` stands twice" in line for line in warnings)
    assert any("no service `image`" in line for line in warnings)


# ---- tokens ---------------------------------------------------------------------------------------------------------


def test_tokens(cheops):
    text = 'Site1 & "DC \\"2" ; around(x,10ms)'
    result = cheops.scope("tokens", text)
    assert result.status == 0 and result.err == ""
    assert result.out.splitlines()[:4] == [
        "   0    5  word    Site1",
        "   6    1  &       &",
        '   8    8  string  "DC \\"2"',
        "  17    1  ;       ;",
    ]
    tokens = cheops.scope("tokens", "-o", "json", text).json["tokens"]
    assert tokens[0] == {"kind": "word", "text": "Site1", "offset": 0, "length": 5}
    assert tokens[2] == {"kind": "string", "text": 'DC "2', "offset": 8, "length": 8}
    assert [token["kind"] for token in tokens[4:]] == ["word", "(", "word", ",", "word", ")"]
    for token in tokens:
        if token["kind"] != "string":
            assert text[token["offset"]:token["offset"] + token["length"]] == token["text"]


def test_tokens_of_what_does_not_parse(cheops):
    assert cheops.scope("tokens", "& ) Site1").status == 0
    assert cheops.scope("tokens", "-o", "json", " ").json == {"tokens": []}
    assert cheops.scope("tokens", "Site1 @").status == 1


# ---- explain --------------------------------------------------------------------------------------------------------

ONE = {"op": "one", "site": "Site1"}
TWO = {"op": "one", "site": "Site2"}
THREE = {"op": "one", "site": "Site3"}


@pytest.mark.parametrize("text, plan", [
    ("Site1", ONE),
    ("Site1 & Site2", {"op": "all", "consistency": "eventual", "of": [ONE, TWO]}),
    ("strong(Site1 & Site2)", {"op": "all", "consistency": "strong", "of": [ONE, TWO]}),
    ("weak(Site1 & Site2)", {"op": "all", "consistency": "weak", "of": [ONE, TWO]}),
    ("with_requirements(Site1 & Site2)", {"op": "all", "with_requirements": True, "consistency": "eventual", "of": [ONE, TWO]}),
    ("with_requirements(Site2)", {"op": "one", "with_requirements": True, "site": "Site2"}),
    ("Site1 % Site2", {"op": "span", "prime": "Site1", "sites": ["Site1", "Site2"]}),
    ("Site2; Site1", {"op": "otherwise", "of": [TWO, ONE]}),
    ("Site1 | Site2", {"op": "any", "of": [ONE, TWO]}),
    ("Site3; Site2", {"op": "otherwise", "of": [THREE, TWO]}),
    ("Site3 & Site2; Site1", {"op": "otherwise", "of": [
        {"op": "all", "consistency": "eventual", "of": [THREE, TWO]}, ONE]}),
    ("around(Site1, 10ms)", {"op": "otherwise", "of": [ONE, {"op": "one", "site": "DC 4"}, TWO]}),
    ("!(Site1 & Site2)", {"op": "otherwise", "of": [{"op": "one", "site": "DC 4"}, THREE]}),
    ("tagged(region=west)", {"op": "all", "consistency": "eventual", "of": [ONE, TWO]}),
    ("either(tagged(region=west))", {"op": "any", "of": [ONE, TWO]}),
])
def test_the_shapes_of_plans(cheops, view, text, plan):
    result = cheops.scope("explain", "--view", view, "-o", "json", text)
    assert result.status == 0 and result.json["plan"] == plan


def test_explain_as_json(cheops, view):
    result = cheops.scope("explain", "--view", view, "--at", "Site2", "--service", "compute", "-o", "json", "Site1;Site3")
    assert result.json == {
        "service": "compute", "at": "Site2", "scope": "Site1; Site3",
        "plan": {"op": "otherwise", "of": [ONE, THREE]}, "latency_ms": 8, "warnings": []}


@pytest.mark.parametrize("text, latency", [("Site1", 0), ('"DC 4"', 0.35), ("Site2", 8)])
def test_expected_latency(cheops, view, text, latency):
    assert cheops.scope("explain", "--view", view, "-o", "json", text).json["latency_ms"] == latency


def test_latency_that_is_not_known_is_null(cheops):
    assert cheops.scope("explain", "--at", "Site9", "-o", "json", "Site1").json["latency_ms"] is None


def test_explain_draws_a_tree(cheops, view):
    result = cheops.scope("explain", "--view", view, "!Site1")
    assert result.status == 0 and result.err == ""
    lines = result.out.splitlines()
    assert "asked at Site1" in lines[0] and "0.35 ms" in lines[0]
    assert lines[2:] == ["├─ DC 4 (0.35 ms)", "├─ Site2 (8 ms)", "└─ Site3 (25 ms, absent since 2024-05-01T12:00:00Z)"]


def test_without_at_the_first_site_there_is(cheops, view):
    assert cheops.scope("explain", "--view", view, "-o", "json", "Site2").json["at"] == "Site1"
    assert cheops.scope("explain", "-o", "json", "Site2 & Site1").json["at"] == "Site2"


def test_without_a_service_each_entry_is_drawn(cheops):
    text = "compute: Site1, image: Site2"
    result = cheops.scope("explain", text)
    assert "compute, asked at Site1" in result.out and "\n\nimage, asked at Site1" in result.out
    assert cheops.scope("explain", "-o", "json", text).json["service"] == "compute"
    only = cheops.scope("explain", "--service", "image", text)
    assert "image, asked" in only.out and "compute, asked" not in only.out


def test_the_service_of_an_entry_that_names_none_is_null(cheops):
    assert cheops.scope("explain", "-o", "json", "Site1").json["service"] is None
    assert cheops.scope("explain", "--service", "image", "-o", "json", "Site1").json["service"] == "image"


def test_a_service_that_the_scope_does_not_name_runs_here(cheops):
    answer = cheops.scope("explain", "--service", "image", "--at", "Site7", "-o", "json", "compute: Site1").json
    assert answer["service"] == "image" and answer["plan"] == {"op": "one", "site": "Site7"}


def test_warnings_are_told_once_for_all_plans(cheops):
    result = cheops.scope("explain", "compute: Site1; Site1, image: Site2")
    assert result.out.count("warning:") == 1
    assert result.out.splitlines()[-1].startswith("warning: `Site1` stands twice")


def test_without_a_view_only_the_named_sites_are_known(cheops):
    result = cheops.scope("explain", "around(Site1, 10ms)")
    assert result.status == 0 and "warning: only the sites that are named are known" in result.out
    answer = cheops.scope("explain", "--at", "Site3", "-o", "json", "!Site1").json
    assert answer["plan"] == THREE and len(answer["warnings"]) == 1
    assert cheops.scope("explain", "-o", "json", "Site1").json["warnings"] == []


def test_without_any_site_there_is_no_plan(cheops):
    result = cheops.scope("explain", "all()")
    assert result.status == 2 and result.out == ""
    assert "names no site" in result.err and "--view FILE" in result.err and "--at SITE" in result.err
    assert cheops.scope("explain", "--at", "Site1", "all()").status == 0


@pytest.mark.parametrize("arguments, said", [
    (["--at", "Sit1"], "--at `Sit1` is not in {view}; did you mean `Site1`?"),
    (["--at", "Elsewhere"], "--at `Elsewhere` is not in {view}; there are: Site1, Site2, Site3, DC 4"),
    (["--service", "compte"], "--service `compte` is not in {view}; did you mean `compute`?"),
    (["--service", "network"], "--service `network` is not in {view}; there are: compute, image"),
])
def test_a_site_or_service_that_the_view_does_not_have(cheops, view, arguments, said):
    for action in ("explain", "check"):
        result = cheops.scope(action, "--view", view, *arguments, "Site1")
        assert result.status == 2 and result.out == ""
        assert result.err == "cheops: " + said.format(view=view) + "\n"


def test_many_sites_are_not_all_listed(cheops, tmp_path):
    view = tmp_path / "v.yaml"
    view.write_text("sites: {%s}\n" % ", ".join(f"Paris{i}: " for i in range(50)))
    assert cheops.scope("explain", "--view", str(view), "--at", "X", "Paris1").err.endswith("Paris7, ...\n")


def test_a_view_without_services_knows_nothing_of_them(cheops, tmp_path):
    view = tmp_path / "v.yaml"
    view.write_text("sites: {Site1: }\n")
    assert cheops.scope("explain", "--view", str(view), "--service", "anything", "Site1").status == 0


# ---- refusals -------------------------------------------------------------------------------------------------------

FIELDS = {"type", "message", "offset", "length", "hint"}


@pytest.mark.parametrize("action", ["fmt", "check", "explain"])
def test_a_refusal(cheops, action):
    text = "Site1 & (Site2"
    result = cheops.scope(action, text)
    assert result.status == 1 and result.out == ""
    lines = result.err.splitlines()
    assert lines[0].startswith("cheops: ") and text in lines[1] and "^" in lines[2]
    result = cheops.scope(action, "-o", "json", text)
    assert result.status == 1 and result.err == ""
    assert set(result.json) == {"error"} and set(result.json["error"]) == FIELDS
    assert result.json["error"]["type"] == "syntax"


def test_a_refusal_with_a_suggestion(cheops, view):
    result = cheops.scope("explain", "--view", view, "Site2 & Sit1")
    assert result.status == 1
    assert "unknown site `Sit1`" in result.err and "did you mean `Site1`?" in result.err and "        ^^^^" in result.err
    error = cheops.scope("explain", "--view", view, "-o", "json", "Site2 & Sit1").json["error"]
    assert error == {"type": "unknown-site", "message": "unknown site `Sit1`", "offset": 8, "length": 4,
                     "hint": "did you mean `Site1`?"}


def test_an_empty_scope(cheops):
    for action in ("fmt", "check", "explain"):
        assert cheops.scope(action, "-o", "json", "").json["error"]["type"] == "empty"
