"""Who gets an answer from the web app, asked of a real server."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from clew.errors import UsageError
from clew.host import data_dir
from clew.web.app import STATIC_FILES, media_type, static_url
from clew.web.auth import MAX_BODY_BYTES, SessionTokens
from clew.web.routes import ACTIONS
from clew.web.server import bind
from tests.web.served import Served, served
from tests.web.shown import Shown

SECRET_PATH = "/home/ada/secret"


async def _page(_request: Request) -> Response:
    return PlainTextResponse("a transcript")


async def _broken(_request: Request) -> Response:
    raise RuntimeError(SECRET_PATH)


@pytest.fixture(scope="module")
def app() -> Iterator[Served]:
    with served([Route("/", _page), Route("/broken", _broken)]) as running:
        yield running


@pytest.fixture(scope="module")
def cookie(app: Served) -> str:
    return app.cookie()


def test_the_link_opens_the_app(app: Served, cookie: str) -> None:
    assert app.ask("/", Cookie=cookie).body == b"a transcript"


HOSTS = [
    "", "evil.example", "evil.example:{port}", "127.0.0.1", "localhost", "[::1]", "127.0.0.1:1", "localhost:80",
    "127.0.0.1.evil.example:{port}", "localhost.evil.example:{port}", "evil.example@127.0.0.1:{port}",
    "127.0.0.1:{port}@evil.example", "127.0.0.1:{port}.evil.example", "127.1:{port}", "0:{port}", "0.0.0.0:{port}",
    "2130706433:{port}", "0x7f000001:{port}", "0177.0.0.1:{port}", "127.0.0.2:{port}", "[::]:{port}",
    "[::ffff:127.0.0.1]:{port}", "[0:0:0:0:0:0:0:1]:{port}", "::1:{port}", "localhost:0{port}", "localhost:{port}0",
    "localhost:{port} evil", "localhost:{port},evil.example", "LOCALHOST.:{port}", "localhost.:{port}", "*:{port}",
]  # fmt: skip


def test_W01_another_name_gets_no_answer(app: Served, cookie: str) -> None:
    for host in HOSTS:
        for path in ("/", "/enter", static_url("app.css"), "/nowhere"):
            answer = app.ask(path, Host=host.format(port=app.port), Cookie=cookie)
            assert answer.status in (400, 421), (host, path)
            assert b"transcript" not in answer.body


def test_W01_two_names_get_no_answer(app: Served, cookie: str) -> None:
    with socket.create_connection(("127.0.0.1", app.port), timeout=5) as raw:
        head = ("GET / HTTP/1.1", f"Host: {app.host}", "Host: evil.example", f"Cookie: {cookie}", "Connection: close")
        raw.sendall("\r\n".join((*head, "", "")).encode())
        answer = raw.makefile("rb").read()
    assert answer.split()[1] in (b"400", b"421") and b"transcript" not in answer


def test_W01_its_own_names_do(app: Served, cookie: str) -> None:
    for name in ("127.0.0.1", "localhost", "[::1]", "LocalHost"):
        assert app.ask("/", Host=f"{name}:{app.port}", Cookie=cookie).status == 200, name


def test_W02_another_site_gets_no_answer(app: Served, cookie: str) -> None:
    for site in ("cross-site", "same-site", "odd"):
        assert app.ask("/", Cookie=cookie, Sec_Fetch_Site=site).status == 403, site


ORIGINS = ["null", "http://evil.example", "https://{host}", "http://localhost:1", "http://{host}.x", ""]


def test_W02_another_origin_gets_no_answer(app: Served, cookie: str) -> None:
    for origin in ORIGINS:
        assert app.ask("/", Cookie=cookie, Origin=origin.format(host=app.host)).status == 403, origin


def test_W02_a_form_or_a_simple_request_changes_nothing(app: Served) -> None:
    for sort in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"):
        assert app.enter(app.tokens.link_token, Content_Type=sort).status == 403
    body = b'{"token":"x"}'
    assert app.ask("/enter", "POST", body, Content_Type="application/json").status == 403
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert app.ask("/", method, b"{}", Content_Type="application/json", X_Clew="1").status in (401, 405)


def test_W02_no_other_origin_may_read(app: Served, cookie: str) -> None:
    answer = app.ask("/", Cookie=cookie)
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_W03_without_the_link_there_is_nothing(app: Served) -> None:
    name = app.tokens.cookie_name
    for cookie in ("", f"{name}=", f"{name}=x", f"{name}={app.tokens.link_token}", "other=1"):
        assert app.ask("/", Cookie=cookie).status == 401
    assert app.ask("/", Accept="text/html").headers["location"] == "/enter"


def test_W03_a_link_is_good_once(app: Served) -> None:
    link = app.tokens.link_token
    assert len(link) * 6 >= 128
    assert app.enter("wrong").status == 403
    assert app.enter(link).status == 200
    assert app.enter(link).status == 403
    assert app.tokens.link_token != link


def test_W03_the_cookie_is_kept_from_pages_and_other_sites(app: Served) -> None:
    said = app.enter(app.tokens.link_token).headers["set-cookie"].lower()
    assert "httponly" in said and "samesite=strict" in said and "domain" not in said


def test_W03_a_cookie_of_any_bytes_is_no_key(app: Served, cookie: str) -> None:
    for odd in (
        b"\xff",
        b"\x80\xfe=\xff",
        f"{app.tokens.cookie_name}=".encode() + b"\xc3\x28",
        b";;=;\xff;",
        b"a[b]=1; \xe9=2",
    ):
        assert app.ask("/", Cookie=odd).status == 401
        # Other servers of this machine may have set what they like: it does not lock anybody out.
        assert app.ask("/", Cookie=odd + b"; " + cookie.encode()).status == 200
        assert twice(app, odd) == 401
        assert twice(app, odd, cookie.encode()) == 200


def twice(app: Served, *cookies: bytes) -> int:
    """The status of a request with a cookie header of words, and one more for each of these."""
    lines = [b"Cookie: first=1", *(b"Cookie: " + cookie for cookie in cookies)]
    with socket.create_connection(("127.0.0.1", app.port), timeout=5) as raw:
        head = [b"GET / HTTP/1.1", f"Host: {app.host}".encode(), *lines, b"Connection: close", b"", b""]
        raw.sendall(b"\r\n".join(head))
        return int(raw.makefile("rb").read().split()[1])


def test_W03_two_servers_do_not_share_their_cookies(app: Served, cookie: str) -> None:
    """A browser sends the cookies of one port to every other port of the same address."""
    with served([Route("/", _page)]) as other:
        own = other.cookie()
        assert own.partition("=")[0] != cookie.partition("=")[0]
        for server, accepted, refused in ((app, cookie, own), (other, own, cookie)):
            value = refused.partition("=")[2]
            assert server.ask("/", Cookie=refused).status == 401
            assert server.ask("/", Cookie=f"{server.tokens.cookie_name}={value}").status == 401
            # What the browser holds after entering both.
            assert server.ask("/", Cookie=f"{cookie}; {own}").status == 200
            assert server.ask("/", Cookie=accepted).status == 200


def test_W03_a_broken_exchange_is_refused(app: Served) -> None:
    for body in (b"", b"{", b"[]", b'{"token":1}', b'{"token":"\xff"}', b"null"):
        assert app.ask("/enter", "POST", body, Content_Type="application/json", X_Clew="1").status in (400, 403)


def test_W03_every_key_is_compared() -> None:
    keys = SessionTokens(7411)
    visitors = [keys.exchange(keys.link_token) for _ in range(3)]
    assert all(visitor is not None and keys.is_valid(visitor) for visitor in visitors)
    assert not keys.is_valid("") and not keys.is_valid("é")


def test_W04_other_addresses_must_be_asked_for() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", ""):
        with pytest.raises(UsageError):
            bind(host, 0)


PATHS = [
    "/../etc/passwd", "{static}/../app.py", "{static}/../../app.py", "{static}/%2e%2e/app.py", "{static}/..%2fapp.py",
    "{static}/%2e%2e%2fapp.py", "{static}/%00", "{static}/app.css%00.js", "{static}//etc/passwd", "{static}/app.py",
    "{static}/%2fetc%2fpasswd", "{static}/....//app.py", "{static}/app.css/..", "{static}/", "{static}/C:%5cx",
    "/static/", "/static/app.css", "/static/0123456789abcdef/app.css", "/%5c..%5cx", "//evil.example/",
]  # fmt: skip


def test_W05_no_path_leads_out(app: Served, cookie: str) -> None:
    static = static_url("").removesuffix("/")
    for path in PATHS:
        answer = app.ask(path.format(static=static), Cookie=cookie)
        assert answer.status in (400, 404), path
        assert b"import" not in answer.body and b"root:" not in answer.body, path


def test_W06_every_answer_has_its_headers(app: Served, cookie: str) -> None:
    for path in ("/", "/enter", static_url("app.css"), "/nowhere", "/broken"):
        headers = app.ask(path, Cookie=cookie).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"


def test_W06_only_static_files_are_cached_and_never_a_refusal(app: Served, cookie: str) -> None:
    for name in STATIC_FILES:
        assert app.ask(static_url(name), Cookie=cookie).headers["cache-control"].endswith("immutable")
    not_cached = ("/", "/enter", static_url("nothing"), "/static/0123456789abcdef/app.js", "/nowhere", "/broken")
    for path, visitor in ((static_url("app.js"), ""), *((path, cookie) for path in not_cached)):
        assert app.ask(path, Cookie=visitor).headers["cache-control"] == "no-store", path


def test_scripts_import_each_other_from_the_folder_of_their_version(app: Served, cookie: str) -> None:
    """A script of another version would be another module, with variables of its own."""
    for name in STATIC_FILES:
        answer = app.ask(static_url(name), Cookie=cookie)
        assert answer.status == 200 and answer.headers["content-type"].startswith(media_type(name))
        for imported in re.findall(r'^import .*?"([^"]+)";$', answer.body.decode(), re.MULTILINE):
            assert imported.startswith("./") and imported.removeprefix("./") in STATIC_FILES, (name, imported)


def test_W07_a_long_body_is_refused(app: Served) -> None:
    assert app.enter("x" * 100_000).status == 413
    with socket.create_connection(("127.0.0.1", app.port), timeout=5) as raw:
        head = f"POST /enter HTTP/1.1\r\nHost: {app.host}\r\nX-Clew: 1\r\nContent-Type: application/json\r\n"
        raw.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(64):
                raw.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            raw.sendall(b"0\r\n\r\n")
            answer = raw.recv(64)
        except OSError:
            answer = b""
    assert not answer.startswith(b"HTTP/1.1 200")


def test_W07_a_long_head_is_refused(app: Served) -> None:
    try:
        status = app.ask("/", X_Long="x" * 200_000).status
    except ConnectionError:
        # The server need not read to the end what it refuses.
        status = 431
    assert status in (400, 431)
    assert app.ask("/enter").status == 200


def test_W08_errors_say_nothing_of_the_machine(app: Served, cookie: str) -> None:
    for path in ("/broken", "/nowhere"):
        answer = app.ask(path, Cookie=cookie)
        assert answer.status in (404, 500)
        assert SECRET_PATH.encode() not in answer.body and b"Traceback" not in answer.body
        assert "server" not in answer.headers


@pytest.mark.parametrize("path", ACTIONS)
def test_W02_every_action_is_for_the_pages_of_this_app_alone(demo: Shown, path: str) -> None:
    """Without the cookie, from another origin, as a form, and with a long body nothing is done."""
    before = sorted(data_dir().rglob("*"))
    own = {"Content_Type": "application/json", "X_Clew": "1", "Cookie": demo.cookie()}
    refused: list[tuple[dict[str, str], int]] = [
        ({**own, "Cookie": ""}, 401),
        ({**own, "Cookie": f"{demo.tokens.cookie_name}=x"}, 401),
        ({**own, "Sec_Fetch_Site": "cross-site"}, 403),
        *(({**own, "Origin": origin.format(host=demo.host)}, 403) for origin in ORIGINS),
        *(({**own, "Content_Type": sort}, 403) for sort in ("text/plain", "application/x-www-form-urlencoded", "")),
        ({name: value for name, value in own.items() if name != "X_Clew"}, 403),
        ({**own, "Host": "evil.example"}, 421),
    ]
    for headers, status in refused:
        assert demo.ask(path, "POST", b"{}", **headers).status == status, headers
    assert demo.ask(path, "POST", b'{"x":"' + b"x" * MAX_BODY_BYTES + b'"}', **own).status == 413
    for body in (b"", b"{", b"[]", b"null", b'{"\xff":1}', b"[" * 10_000):
        assert demo.ask(path, "POST", body, **own).status == 400, body[:10]
    for method in ("PUT", "DELETE", "PATCH"):
        assert demo.ask(path, method, b"{}", **own).status == 405
    assert sorted(data_dir().rglob("*")) == before
