"""Sessions of every agent go to every agent that takes sessions, and come back as they were."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from clew.agents import registry
from clew.agents.base import SourceFile, open_main
from clew.convert import origin
from clew.convert.prepare import prepare
from clew.convert.restore_original import Restoration
from clew.export.verify import verify
from clew.filters import Filters
from clew.host import Host
from clew.library import Library, StoredSession
from tests.agents import cursor_database, goose_database, opencode_database
from tests.convert.said import only
from tests.demo_home import write_small_demo
from tests.receivers import RECEIVERS

FIXTURES = Path(__file__).parents[1] / "fixtures"
FIXTURE_FOLDERS = {
    "cline": ".cline/data",
    "continue": ".continue/sessions",
    "copilot-cli": ".copilot/session-state",
    "harbor": ".harbor/trajectories",
    "kilo-code": ".config/Code/User/globalStorage",
    "kimi-code": ".kimi-code",
    "mistral-vibe": ".vibe/logs/session/unified",
    "pi": ".pi/agent/sessions",
    "qwen-code": ".qwen",
    "roo-code": ".config/Code/User/globalStorage",
    "vscode-chat": ".config/Code/User",
}
"""Where the fixtures of an agent belong below a home; the other agents have sessions in the demo, or databases."""
SESSIONS_PER_AGENT = 2


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Sessions of all agents in one home."""
    home = tmp_path_factory.mktemp("matrix")
    write_small_demo(home)
    for agent, folder in FIXTURE_FOLDERS.items():
        shutil.copytree(FIXTURES / agent, home / folder, dirs_exist_ok=True)
    with closing(goose_database.Database(home / ".local/share/goose/sessions/sessions.db")) as goose:
        goose_database.write_conversation(goose)
    for name in ("opencode", "kilo"):
        with closing(opencode_database.Database(home / f".local/share/{name}/{name}.db")) as opencode:
            opencode_database.write_conversation(opencode)
    with closing(cursor_database.Database(cursor_database.database_in(home))) as cursor:
        cursor_database.write_conversation(cursor)
    return Library(Host.at(home))


def largest_sessions(library: Library, agent: str) -> list[StoredSession]:
    """The sessions of an agent that hold most bytes, without those of sub-agents."""
    sessions = [each for each in library.sources() if each.agent.id == agent and not each.is_subagent]
    return sorted(sessions, key=lambda each: (-each.source.size, each.id))[:SESSIONS_PER_AGENT]


def content(source: SourceFile) -> list[bytes]:
    """The files of a session; of one in a database, its rows."""
    with open_main(source) as stream:
        main = stream.read()
    return [main, *(origin.file_path(source, name).read_bytes() for name in origin.file_names(source)[1:])]


@pytest.mark.slow
@pytest.mark.parametrize("receiver", RECEIVERS)
@pytest.mark.parametrize("agent", registry.names())
def test_a_session_goes_there_and_comes_back(library: Library, tmp_path: Path, agent: str, receiver: str) -> None:
    sessions = largest_sessions(library, agent)
    assert sessions
    for session in sessions:
        there, back = tmp_path / session.id / "there", tmp_path / session.id / "back"
        prepared = prepare(session.agent, session.source, receiver, find=library.subagents(session))
        written = prepared.write(there, allow_loss=True)
        assert all(loss.what.strip() and loss.why.strip() for loss in written.losses)
        copy = only(Path(written.files[0]))
        assert copy.agent.id == receiver
        assert verify(copy.agent, copy.source).holds
        if receiver == agent:
            continue
        restored = prepare(copy.agent, copy.source, agent)
        assert isinstance(restored, Restoration)
        files = restored.write(back).files
        assert content(only(Path(files[0])).source) == content(session.source)


WITHOUT_COPIES = {"goose", "kilo", "opencode", "sage-emacs"}
"""Agents with a database take a copy through their own import; sage-emacs has one session in a folder."""


@pytest.mark.slow
@pytest.mark.parametrize("agent", sorted(set(RECEIVERS) - WITHOUT_COPIES))
def test_a_copy_for_the_same_agent_is_not_counted_again(library: Library, tmp_path: Path, agent: str) -> None:
    home, filters = tmp_path / "home", Filters(agent=(agent,))
    shutil.copytree(library.hosts[0].home, home)
    own = Library(Host.at(home), catalog_folder=tmp_path / "catalog")
    before = own.usage(filters)
    for session in largest_sessions(own, agent):
        prepare(session.agent, session.source, agent, find=own.subagents(session)).write(home, allow_loss=True)
    assert own.usage(filters) == before
