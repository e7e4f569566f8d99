"""The file that names sources: one line each, replaced whole, and nothing in it is lost."""

from __future__ import annotations

import pytest

from clew.errors import UsageError
from clew.host import data_dir
from clew.sources import config, registry
from clew.sources.config import Entry, default_name


def test_lines_come_and_go() -> None:
    assert config.load() == ((), (), ())
    box, attic = Entry(name="box", kind="ssh", where="ada@box"), Entry(name="attic", kind="home", where="/mnt/attic")
    config.add(box)
    config.add(attic)
    assert config.load().entries == (box, attic)
    assert (data_dir() / "sources.jsonl").read_text().splitlines()[0] == '{"name":"box","kind":"ssh","where":"ada@box"}'
    config.remove("box")
    assert config.load().entries == (attic,)
    assert (data_dir() / "sources.jsonl").stat().st_mode & 0o077 == 0


def test_lines_that_are_not_understood_are_said_and_stay() -> None:
    config.add(Entry(name="box", kind="ssh", where="box"))
    odd = [
        '{"name":"cloud","kind":"s3","where":"bucket"}',
        '{"name":"x","kind":"ssh","where":"x","port":1}',
        "not json",
        '{"name":"../up","kind":"ssh","where":"box"}',
        '{"name":"evil","kind":"ssh","where":"-oProxyCommand=touch x"}',
        '{"name":"rel","kind":"home","where":"relative"}',
        '{"name":"BOX","kind":"ssh","where":"other"}',
        '{"name":"local","kind":"home","where":"/x"}',
        "\udcff",
    ]
    path = data_dir() / "sources.jsonl"
    path.write_bytes(path.read_bytes() + "\n\n".join(odd).encode("utf-8", "surrogateescape") + b"\n")
    now = config.load()
    assert [entry.name for entry in now.entries] == ["box"]
    assert len(now.problems) == len(odd)
    assert all(problem.startswith(f"{path}:") for problem in now.problems)
    config.add(Entry(name="two", kind="ssh", where="two"))
    config.remove("box")
    kept = path.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    assert kept == [*odd, '{"name":"two","kind":"ssh","where":"two"}']
    assert [source.name for source in registry.sources()] == ["local", "BOX", "two"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "-x", "local", "a b", "x" * 65, "a\n", ".hidden"])
def test_names_that_could_be_something_else_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        config.checked(Entry(name=name, kind="ssh", where="box"))


@pytest.mark.parametrize(
    ("text", "name"),
    [("ada@box", "ada@box"), ("::1", "1"), ("Grace Hopper", "Grace-Hopper"), (".backup", "backup"), ("…", "")],
)
def test_names_are_made_of_what_is_there(text: str, name: str) -> None:
    assert default_name(text) == name


@pytest.mark.parametrize(
    ("where", "kind"),
    [("box", "ssh"), ("ssh://box:22", "ssh"), ("./box", "home"), ("~/x", "home"), ("/x/y", "home"), ("D:\\x", "home")],
)
def test_a_slash_makes_a_folder(where: str, kind: str) -> None:
    assert registry.entry_for(where, "name").kind == kind


def test_an_unreadable_state_is_no_state() -> None:
    config.add(Entry(name="box", kind="ssh", where="box"))
    folder = data_dir() / "remotes" / "box"
    folder.mkdir(parents=True)
    for content in ("", "{", '{"home":"/../x","env":{},"fetched_at":""}', '{"home":1}'):
        (folder / "state.json").write_text(content)
        assert registry.sources()[1].host is None
