"""Passwords in addresses: the user and the password end at the last at sign before the host."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.redact import Marker, redact, scan
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor

VALUES = [
    "S3cr@tPassw0rd99", "p@ssw0rdLong77", "@leading9x", "trailing9x@", "a@b@c@d9x", "Sl/ash9xQ", "a/b@c/d9Q",
    "Que?stion9x", "Ha#sh9xQ", "co:lon9xQ", "a:b/c?d#e@f9Q", "%40S3cret9x", "p%40ss%2Fw0rd9", "per%cent9x",
    "(br{ack}et)9x", "$dollar!9x", "*star9xQz", "9000/x@y7Q", "x;y,z=9&Q+~", "p@ss/w0rd9",
]  # fmt: skip
FORMS = ["postgres://admin:{}@db/", "mysql+pymysql://app:{}@10.0.0.7:3306/shop?x=1", "redis://:{}@cache:6379/0",
         "amqps://me@corp:{}@mq", "mongodb://u:{}@h1:27017,h2:27018/db", "jdbc:oracle://u:{}@h"]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", VALUES)
def test_a_password_with_any_sign_is_masked_whole(value: str, form: str) -> None:
    for around in ("{}", "see {} there", 'url = "{}"', "(`{}`)", "DATABASE_URL={}\n", "a\n{}\nb"):
        text = around.format(form.format(value))
        assert redact(text) == around.format(form.format("[REDACTED]")), text


@pytest.mark.parametrize("value", VALUES)
def test_a_password_in_an_address_of_the_web_is_masked(value: str) -> None:
    text = f"git clone https://ada:{value}@git.lindwerk.de/shop.git"
    # What begins like a port is one, in addresses of the web.
    if not value.startswith("9000/"):
        assert redact(text) == "git clone https://ada:[REDACTED]@git.lindwerk.de/shop.git"


@pytest.mark.parametrize("profile", ["pii", "all"])
def test_a_password_is_no_part_of_an_email_address(profile: str) -> None:
    value = "Qz7vKp2mWx"
    text = f"postgres://app:{value}@db.lindwerk.de/app of ada@lindwerk.de"
    assert [(found.rule, text[found.start : found.end]) for found in scan(text, profile)] == [
        ("url_password", value),
        ("email", "ada@lindwerk.de"),
    ]
    # So it is found by itself, too.
    redactor = Redactor(MaskSettings(profile, Marker()))
    assert redactor.learn_and_mask([text, f"it is {value} there"])[1] == "it is [REDACTED] there"


@given(st.lists(st.sampled_from(["a", "X", "1", "9", *"@/:?#%!$&+=.-_~"]), min_size=8, max_size=40))
def test_nothing_of_a_password_is_left(signs: list[str]) -> None:
    value = "qWmTk" + "7".join(signs) + "7Z"  # nothing is repeated as in a placeholder
    left = redact(f"postgres://admin:{value}@db\n")
    assert left == "postgres://admin:[REDACTED]@db\n"
    assert redact(f"postgres://admin:{quote(value, safe='')}@db\n") == left


def test_it_is_masked_in_records_and_known_elsewhere() -> None:
    value = "S3cr@tPassw0rd99"
    lines = [{"a": f"postgres://admin:{value}@db/"}, {"a": f"it is {value} there"}, {"a": f"https:\\/\\/u:{value}@db/"}]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    masked = b"".join(mask_file(partial(BytesIO, content), Redactor(MaskSettings("secrets", Marker()))))
    assert b"S3cr" not in masked and b"Passw0rd99" not in masked


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:5173/@vite/client",
        "http://localhost:3000/users/ada@lindwerk.de",
        "https://registry.dev:4873/@scope/pkg@1.2.3",
        "https://web:8080/x?mail=ada@lindwerk.de",
        "jdbc:postgresql://db:5432/app?user=ada@lindwerk.de",
        "git+ssh://git@github.com:org/repo.git@v1.0",
        "ssh://git@host:22/x",
        "https://unpkg.com/react@18/x:y@z",
        "http://$USER:$PASS@host/",
        "postgres://user:${DB_PASSWORD}@db/x",
        "postgres://user:{password}@db/x",
        "postgres://user:a/b@{word}@db/x",
        "postgres://user:%s@db/x",
        "postgres://user:%(password)s@db/x",
        "postgres://user:password@localhost/x",
        "postgres://user:****@db/x",
        "mailto:ada@lindwerk.de http://a:80 b@c",
        "http://localhost:${PORT}/@vite/client",
        "https://user:password@example.com/a@b",
    ],
)
def test_what_is_no_password_stays(text: str) -> None:
    assert scan(text) == []


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://ada:{}@registry.dev.io/@scope/pkg", "https://ada:[REDACTED]@registry.dev.io/@scope/pkg"),
        ("https://ada:{}@git.dev.io/x.git@v1", "https://ada:[REDACTED]@git.dev.io/x.git@v1"),
        ("https://ada:{}@h.dev.io/x?m=a@b.io", "https://ada:[REDACTED]@h.dev.io/x?m=a@b.io"),
        ("https://ada:{}@localhost:80/a@b", "https://ada:[REDACTED]@localhost:80/a@b"),
    ],
)
def test_an_at_sign_behind_the_host_is_no_end_of_a_password(text: str, masked: str) -> None:
    assert redact(text.format("p@ssw0rdLong77")) == masked
