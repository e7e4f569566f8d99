"""The user in home paths of every system, with spaces in the name, in every spelling of the separators."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO
from typing import Any

import pytest

from clew.redact import Marker, redact
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor

PATHS = [
    ("C:\\Users\\{}\\x", "John Smith"),
    ("C:\\Users\\{}\\x", "john smith"),
    ("d:\\users-of\\y C:\\Users\\{}\\x", "Jörg Müller"),
    ("C:\\Users\\{}\\AppData\\Local", "Anna Maria van Dyck"),
    ("C:/Users/{}/x", "John Smith"),
    ("C:/Users/{}/x", "john smith"),
    ("C:/Users\\{}\\x", "John Smith"),
    ("/c/Users/{}/x", "john smith"),
    ("/mnt/c/Users/{}/x", "John Smith"),
    ("/cygdrive/c/Users/{}/x", "john smith"),
    ("file:///C:/Users/{}/x", "John%20Smith"),
    ("\\\\?\\C:\\Users\\{}\\x", "John Smith"),
    ("/Users/{}/Library", "John Smith"),
    ("/Users/{}/Library", "Anna Maria Lind"),
    ("\\\\wsl$\\Ubuntu\\home\\{}\\src", "alice"),
    ("\\\\wsl$\\Ubuntu\\home\\{}", "alice"),
    ("\\\\wsl.localhost\\Ubuntu-22.04\\home\\{}\\src", "alice"),
    ("\\\\WSL.LOCALHOST\\Debian\\home\\{}\\src", "alice"),
    ("//wsl$/Ubuntu/home/{}/src", "alice"),
    ("file://wsl.localhost/Ubuntu/home/{}/src", "alice"),
    ("\\\\wsl$\\Ubuntu\\home\\{}\\src", "John Smith"),
    ("/home/{}/src", "alice"),
    ("see \\/home\\/{}\\/x now", "alice"),
    ("see %2Fhome%2F{}%2Fx", "alice"),
    ("see &#x2F;home&#x2F;{}&#x2F;x", "alice"),
    ("C:\\Users\\{}", "alice"),
    ("c:\\users\\{}\\x", "alice"),
    ("c:/users/{}/x", "John Smith"),
    ("in D:\\USERS\\{}\\x", "alice"),
]


def masked_line(value: Any) -> str:
    redactor = Redactor(MaskSettings("paths", Marker()))
    content = json.dumps(value, ensure_ascii=False).encode() + b"\n"
    return b"".join(mask_file(partial(BytesIO, content), redactor)).decode()


@pytest.mark.parametrize(("form", "user"), PATHS)
def test_the_user_is_masked(form: str, user: str) -> None:
    path, expected = form.format(user), form.format("[REDACTED]")
    nested = json.dumps({"path": path})
    twice = json.dumps({"inner": nested})
    assert redact(f"in {path}", "paths") == f"in {expected}"
    for around in ("{}", "a {}, b", "'{}'", "x\n{}\ny"):
        text = around.format(path)
        assert redact(text, "paths") == around.format(expected)
        assert json.loads(masked_line({"cwd": text})) == {"cwd": around.format(expected)}
    for value in ({"cwd": path}, {path: 1}, {"a": [nested]}, {"a": twice}, {"a": nested, "b": 1763226314000}):
        masked = masked_line(value)
        for part in user.replace("%20", " ").split(" "):
            assert part not in masked, masked
        assert part not in json.dumps(
            Redactor(MaskSettings("paths", Marker())).learn_and_mask(value), ensure_ascii=False
        )


@pytest.mark.parametrize("end", ['"', "'", "\n", ""])
def test_a_name_with_a_space_at_the_end_of_a_path_is_masked(end: str) -> None:
    assert redact(f"{end}C:\\Users\\John Smith{end}", "paths") == f"{end}C:\\Users\\[REDACTED]{end}"
    assert json.loads(masked_line({"home": "C:\\Users\\John Smith"})) == {"home": "C:\\Users\\[REDACTED]"}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("cd /home/ada && ls src/x", "cd /home/[REDACTED] && ls src/x"),
        ("cd /Users/ada && ls src/x", "cd /Users/[REDACTED] && ls src/x"),
        ("between /Users/ada and /Users/bob/x", "between /Users/[REDACTED] and /Users/[REDACTED]/x"),
        ("C:\\Users\\ada is the home of ada", "C:\\Users\\[REDACTED] is the home of ada"),
        ("cp /home/ada/a Target/b", "cp /home/[REDACTED]/a Target/b"),
    ],
)
def test_what_stands_behind_a_home_stays(text: str, masked: str) -> None:
    assert redact(text, "paths") == masked
    assert json.loads(masked_line({"a": text})) == {"a": masked}


@pytest.mark.parametrize(
    "text",
    [
        "C:\\Users\\Public\\x",
        "C:\\Users\\All Users\\x",
        "/Users/Shared/x",
        "C:\\Users\\Default User\\x",
        "App\\Users\\List",
        "nav-home-button-icon",
        "x/-home-runner-x",
    ],
)
def test_a_home_of_nobody_stays(text: str) -> None:
    assert redact(text, "paths") == text
    assert json.loads(masked_line({"a": text})) == {"a": text}


@pytest.mark.parametrize("escape", ["\\n", "\\t", "\\r\\n"])
def test_an_address_behind_an_escaped_line_end_is_masked(escape: str) -> None:
    address = ".".join(["10", "1", "2", "3"])
    assert redact(f'printf "x{escape}{address}{escape}" done', "paths") == f'printf "x{escape}[REDACTED]{escape}" done'
    assert address not in masked_line(f"x{escape}{address}{escape} done")
