"""No canary gets from a session, or from what an agent sends to a hook, into the list of runs."""

import json

import pytest

from clew.hooks.capture import archive_ended_session
from clew.hooks.log import append_run, load_runs, log_path
from clew.host import Host
from tests.cli.running import clew
from tests.redact.test_canaries import Subject, every_home, subject

__all__ = ["subject"]


@pytest.mark.slow
@every_home
def test_the_runs_of_hooks_hold_no_canary(subject: Subject) -> None:
    host = Host.at(subject.planted.home)
    tokens = [canary.token for canary in subject.planted.canaries]
    for session in subject.sessions:
        for path in (str(session.path), f"{session.path}/{tokens[0]}", tokens[0]):
            sent = {"transcript_path": path, "session_id": tokens[0], "last_message": tokens}
            append_run(archive_ended_session(session.agent.id, json.dumps(sent).encode()[: 64 << 10], host), host.now())
    outcomes = {run.outcome for _, run in load_runs()}
    assert outcomes <= {"archived", "unchanged", "not-a-session"}
    assert outcomes & {"archived", "unchanged"}
    assert not subject.finder.found(log_path().read_bytes())
    for form in ((), ("--json",)):
        done = clew("hook", "status", *form)
        assert not subject.finder.found(done.raw + done.err.encode())
