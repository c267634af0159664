"""What the tests of descriptions share."""
import json

import pytest
import yaml


@pytest.fixture
def lint(cheops, tmp_path):
    """Writes a description, given as text or as what YAML makes of it, and checks it."""
    def run(content, *arguments):
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        (tmp_path / "app.yaml").write_text(text)
        return cheops("app", "lint", "app.yaml", *arguments, cwd=tmp_path)
    return run


@pytest.fixture
def explain(cheops):
    """What is made of a request, as JSON."""
    def run(*arguments):
        result = cheops("app", "explain", "-o", "json", *arguments)
        assert result.err == "", result
        return json.loads(result.out)
    return run
