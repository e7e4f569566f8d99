"""Every problem code is well formed."""

import re

import pytest

from clew.model import Problem
from clew.model.codes import CODES, problem


@pytest.mark.parametrize("name", CODES)
def test_a_code_says_what_it_means(name: str) -> None:
    code = CODES[name]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert code.severity in ("error", "warning", "note")
    assert code.meaning
    assert code.hint.endswith(".")


@pytest.mark.seed("S4-38")
def test_a_problem_is_a_value() -> None:
    found = problem(
        "no-timestamp", "message 3 has no timestamp", file="a.jsonl", line=3, start=10, end=20, index=3, path="$.t"
    )
    assert found == Problem(
        code="no-timestamp",
        severity="error",
        message="message 3 has no timestamp",
        hint=CODES["no-timestamp"].hint,
        file="a.jsonl",
        line=3,
        start=10,
        end=20,
        index=3,
        path="$.t",
    )
    assert problem("empty-session").message == "empty session"
