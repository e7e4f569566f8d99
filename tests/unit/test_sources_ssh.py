"""Hosts that may be named, the words ssh is started with, and a host that lies."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.agents import registry
from clew.errors import RemoteFailed, UsageError
from clew.host import Host
from clew.sources import fetch as fetching
from clew.sources import mirror as mirroring
from clew.sources.fetch import fetch, fetch_dry_run, variables
from clew.sources.mirror import Listed, Mirror
from clew.sources.ssh import Connection, Target

GOOD = {
    "box": Target("box"),
    "box.example.org": Target("box.example.org"),
    "my_box-2": Target("my_box-2"),
    "10.0.0.7": Target("10.0.0.7"),
    "::1": Target("::1"),
    "fe80::1:2": Target("fe80::1:2"),
    "ada@box": Target("box", "ada"),
    "ada.l@::1": Target("::1", "ada.l"),
    "ssh://box": Target("box"),
    "ssh://box/": Target("box"),
    "ssh://ada@box:2222": Target("box", "ada", 2222),
    "ssh://ada@[::1]:2222": Target("::1", "ada", 2222),
}

BAD = [
    "",
    " ",
    "-",
    "--",
    "-v",
    "-oProxyCommand=touch x",
    "-oProxyCommand=touch${IFS}x",
    "--help",
    "-F/dev/null",
    "ada@-oProxyCommand=x",
    "-ada@box",
    "ada@-box",
    "@box",
    "ada@",
    "ada@@box",
    "a@b@c",
    "box ",
    " box",
    "box box",
    "box\n",
    "box\nProxyCommand x",
    "box\r",
    "box\t",
    "box\0",
    "box;touch x",
    "box|x",
    "box&",
    "box`x`",
    "box$(x)",
    "$HOME",
    "${x}",
    "box%h",
    "%h",
    "box/x",
    "box\\x",
    "box'x",
    'box"x',
    "box#x",
    "box*",
    "box?",
    "~box",
    "box,other",
    "box=x",
    "bóx",
    "box.",
    "box-",
    ".box",
    "box:22",
    "ssh://",
    "ssh://-oProxyCommand=x",
    "ssh://box:",
    "ssh://box:0",
    "ssh://box:65536",
    "ssh://box:22x",
    "ssh://box/path",
    "ssh://ada:secret@box",
    "ssh://[box",
    "ssh://box]",
    "x" * 300,
]


@pytest.mark.parametrize("text", GOOD)
def test_hosts(text: str) -> None:
    assert Target.parse(text) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_W09_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Target.parse(text)


def fake_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str = "") -> Path:
    """An `ssh` that notes its words and then answers as the given Python says; `mark` and `say` are at hand."""
    noted = folder / "words.json"
    program = folder / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, re, sys\n"
        f"json.dump(sys.argv[1:], open({str(noted)!r}, 'w'))\n"
        "size = int(re.search(r'count=([0-9]+)', sys.argv[-1])[1])\n"
        "script = sys.stdin.buffer.read(size)\n"
        "mark = sys.stdin.buffer.readline().strip()\n"
        "names = sys.stdin.buffer.readline().split()\n"
        "out = sys.stdout.buffer\n"
        "def say(head, payload=b''):\n"
        "    out.write(b'\\n' + mark + b' ' + head + b'\\n' + payload)\n"
        "    out.flush()\n"
        "def greet(home=b'/home/ada', **env):\n"
        "    say(b'home', home)\n"
        "    for name in names:\n"
        "        say(b'variable ' + name, env.get(name.decode(), b''))\n"
        "    say(b'ready')\n"
        "    roots = list(iter(lambda: sys.stdin.buffer.readline().strip(), b''))\n"
        "    return roots\n"
        "def wanted():\n"
        "    while line := sys.stdin.buffer.readline().strip():\n"
        "        yield line.split(), sys.stdin.buffer.readline().rstrip(b'\\n')\n" + answer
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return noted


def visit(folder: Path) -> fetching.FetchResult:
    return fetch(Target("box", "ada", 2222), Mirror(folder / "m", "box"), Host.local().now(), idle=10)


def files(folder: Path) -> dict[str, bytes]:
    """Everything below a folder that is no folder."""
    found = (path for path in folder.rglob("*") if not path.is_dir())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


NOTHING = "greet()\nsay(b'list 1700000100')\nsay(b'listed 0')\nlist(wanted())\nsay(b'bye')\n"


def test_W09_the_words_ssh_is_started_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = fake_ssh(tmp_path, monkeypatch, NOTHING)
    assert visit(tmp_path).files == 0
    words = json.loads(noted.read_text())
    *options, dashes, host, remote = words
    assert (dashes, host) == ("--", "box")
    assert options[-4:] == ["-p", "2222", "-l", "ada"]
    assert {"BatchMode=yes", "ConnectTimeout=10", "ClearAllForwardings=yes", "RemoteCommand=none"} <= set(options)
    assert not any("HostKey" in word or "Proxy" in word or "KnownHosts" in word for word in words)
    # The remote command is the same whatever the names: nothing of ours is spelled into it.
    assert remote.startswith("exec sh -c 'eval \"$(dd bs=1 count=")
    assert "ada" not in remote


def test_without_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RemoteFailed, match="ssh is not installed"):
        fetch_dry_run(Target("box"), Mirror(tmp_path, "box"))


LYING = """
roots = greet()
root = b'/home/ada/.claude/projects'
listed = [
    b'5 1700000000 ' + root + b'/-p/good.jsonl',
    b'5 1700000000 ' + root + b'/../../../../../evil.jsonl',
    b'5 1700000000 ' + root + b'/./evil2.jsonl',
    b'5 1700000000 ' + root + b'//evil3.jsonl',
    b'5 1700000000 ' + root + b'/a\\\\b.jsonl',
    b'5 1700000000 ' + root + b'/c:d.jsonl',
    b'5 1700000000 ' + root + b'/bell\\a.jsonl',
    b'5 1700000000 /etc/passwd',
    b'5 1700000000 ../up.jsonl',
    b'5 1700000000 ' + root + b'more/evil.jsonl',
    b'99999999999999 1700000000 ' + root + b'/huge.jsonl',
    b'-5 1700000000 ' + root + b'/negative.jsonl',
    b'5 x ' + root + b'/when.jsonl',
    b'5',
    b'',
    b'5 1700000000 ' + root + b'/-p/good.jsonl/below.jsonl',
    b'5 1700000000 ' + root + b'/-p',
    b'5 1700000000 ' + root + b'/last.jsonl',
]
say(b'list 1700000100', b'\\n'.join(listed))
say(b'listed 0')
for _, path in wanted():
    say(b'file 0', b'12345')
say(b'bye')
"""


def test_W09_nothing_a_host_says_leaves_the_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ssh(tmp_path, monkeypatch, LYING)
    before = set(files(tmp_path))
    seen = visit(tmp_path)
    new = {name: content for name, content in files(tmp_path).items() if name not in before}
    new.pop("words.json", None)
    new.pop("m/state.json")
    root = "m/files/home/ada/.claude/projects"
    good = {f"{root}/-p/good.jsonl", f"{root}/last.jsonl", f"{root}/evil2.jsonl", f"{root}/evil3.jsonl"}
    assert set(new) <= good
    assert new[f"{root}/-p/good.jsonl"] == new[f"{root}/last.jsonl"] == b"12345"
    reasons = "\n".join(seen.problems)
    assert reasons.count("it was not requested") == 3
    assert reasons.count("its name could lead elsewhere") == 4
    assert reasons.count("larger than 4 GiB") == 1
    assert reasons.count("a file and a folder have the same name") == 2


@pytest.mark.parametrize("home", ["", "home", "/home/\udcff", "/home/../../etc", "/home/a\\b", "~", "/home/\x1b[2J"])
def test_W09_a_home_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    fake_ssh(tmp_path, monkeypatch, f"greet(home={home.encode('utf-8', 'surrogateescape')!r})\n")
    with pytest.raises(RemoteFailed, match="box: its home is"):
        visit(tmp_path)


@pytest.mark.parametrize("value", ["/../../etc", "relative", "/a,relative", "/a\\b", "/x/./../..", "\x00", ","])
def test_W09_variables_that_lead_elsewhere_do_not_count(tmp_path: Path, value: str) -> None:
    host = Mirror(tmp_path, "box").host("/home/ada", {"CLAUDE_CONFIG_DIR": value})
    assert host.env == {}


def test_variables_lead_into_the_mirror(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path, "box")
    host = mirror.host("/home/ada", {"CLAUDE_CONFIG_DIR": "/srv/a,, ~/b,~,", "CODEX_HOME": "/c"})
    base = tmp_path / "files"
    assert host.env["CLAUDE_CONFIG_DIR"] == f"{base}/srv/a,{base}/home/ada/b,{base}/home/ada"
    assert host.env["CODEX_HOME"] == f"{base}/c"
    assert {"/srv/a/projects", "/home/ada/b/projects"} <= set(mirror.roots(host))
    assert host.origin(base / "srv" / "a" / "x.jsonl") == ("remote", "box", "/srv/a/x.jsonl")


class Consulting:
    """As much of an agent as a mirror needs."""

    layout = None

    layout = None

    def roots(self, host: Host) -> Iterator[Path]:
        yield host.home / ".x" / "sessions"
        yield Path("/somewhere/else")

    def companions(self, host: Host) -> Iterator[Path]:
        yield Path(host.env.get("X_NAMES") or host.home / ".x") / "names.jsonl"


def test_files_beside_the_sessions_come_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load_all", lambda: [Consulting()])
    mirror = Mirror(tmp_path, "box")
    roots = mirror.roots(mirror.host("/home/ada", {}))
    assert roots == ["/home/ada/.x/names.jsonl", "/home/ada/.x/sessions"]
    listed = [Listed(f"/home/ada/.x/{name}", 1, 0) for name in ("names.jsonl", "names.jsonl.bak", "sessions/a.jsonl")]
    admitted, _ = mirror.filter_allowed(listed, roots)
    assert admitted == [listed[0], listed[2]]
    assert variables() == ["X_NAMES"]


def test_only_what_agents_ask_for_is_asked_of_a_host() -> None:
    assert {"CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"} <= set(variables())
    assert "HOME" not in variables()
    assert all(name.isidentifier() for name in variables())


ANSWERS = {
    "more than was asked for": (
        "greet()\nsay(b'list 1700000100', b'5 1700000000 /home/ada/.claude/projects/a.jsonl')\nsay(b'listed 0')\n"
        "say(b'file 0', b'x' * 1000)\nsay(b'bye')\n",
        "sent more than was requested",
    ),
    "not where it was asked": (
        "greet()\nsay(b'list 1700000100', b'5 1700000000 /home/ada/.claude/projects/a.jsonl')\nsay(b'listed 0')\n"
        "say(b'file 3', b'x')\nsay(b'bye')\n",
        "sent bytes that were not requested",
    ),
    "endless noise": ("while True: out.write(b'x' * 65536)\n", "sent more than was requested"),
    "an endless head": ("say(b'home ' + b'x' * 100000)\n", "sent an unexpected answer"),
    "another word": ("say(b'away')\nsay(b'x')\n", "sent an unexpected answer"),
    "no number": ("greet()\nsay(b'list soon')\nsay(b'x')\n", "sent an unexpected answer"),
    "a huge number": ("greet()\nsay(b'list ' + b'9' * 40)\nsay(b'x')\n", "sent an unexpected answer"),
    "an early end": ("greet()\nsay(b'list 1700000100', b'5 17')\n", "the connection ended early"),
    "nothing at all": ("sys.stderr.write('first\\nProblem: \\x1b[2J\\n')\n", r"Problem: \x1b\[2J\."),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_W09_a_host_that_breaks_the_rules_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    answer, complaint = ANSWERS[case]
    fake_ssh(tmp_path, monkeypatch, answer)
    with pytest.raises(RemoteFailed, match=complaint):
        visit(tmp_path)
    assert files(tmp_path / "m") == {}


def test_a_file_that_shrinks_meanwhile_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = (
        "greet()\nsay(b'list 1700000100', b'5 1700000000 /home/ada/.claude/projects/a.jsonl')\nsay(b'listed 0')\n"
        "for (begin, end, digest), path in wanted(): say(b'file ' + begin, b'12')\nsay(b'bye')\n"
    )
    fake_ssh(tmp_path, monkeypatch, answer)
    assert visit(tmp_path).received == 2
    assert fetch_dry_run(Target("box"), Mirror(tmp_path / "m", "box")).waiting_bytes == 3


def test_a_folder_that_could_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ssh(tmp_path, monkeypatch, NOTHING.replace("listed 0", "listed 1"))
    assert visit(tmp_path).problems == ("some folders could not be read",)


def test_the_mirror_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirroring, "TOTAL_LIMIT", 10)
    listed = [Listed(f"/r/{number}", 4, 0) for number in range(4)]
    admitted, problems = Mirror(tmp_path, "box").filter_allowed(listed, ["/r"])
    assert len(admitted) == 2
    assert problems == ["/r/2: the mirror would be too large", "/r/3: the mirror would be too large"]


def test_marks_may_fall_between_two_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = (
        "import time\nsay(b'home', b'x' * 40)\nwhole = b'\\n' + mark + b' next 7\\n'\n"
        "for at in range(len(whole)): out.write(whole[at:at + 1]); out.flush(); time.sleep(0.002)\nsay(b'end')\n"
    )
    fake_ssh(tmp_path, monkeypatch, answer)
    with Connection(Target("box"), idle=10) as line:
        line.send([""])
        assert line.frame("home") == []
        assert b"".join(line.payload(100)) == b"x" * 40
        assert line.number("next") == 7
        assert line.frame("end") == []
