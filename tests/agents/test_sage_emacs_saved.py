"""sage-emacs: sessions saved under a name are found, told from others, read, checked, and come back byte for byte."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from clew.agents import registry
from clew.agents.base import Agent, Claim
from clew.agents.checking import check_source
from clew.agents.sage_emacs import SageEmacs
from clew.errors import UsageError
from clew.host import Host
from clew.io.compress import open_source
from clew.model import Document, Problem
from clew.model.json import JSON
from clew.sources.local import at_path
from clew.testing import AgentConformance
from tests.agents.saved_sessions import PLACES, message, pretty, saved, without, write
from tests.demo_home import write_small_demo
from tests.json_values import records, values, words
from tests.roundtrip import document_of, files_of, header_of, original, round_trip

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sage-emacs" / "emacs.d" / "sage" / "sessions"
AGENT = SageEmacs()

KEYS = words("role content timestamp uuid sessionId tool_calls name args result success id tool_call_id model usage")
HEADER_KEYS = words("name model provider created_at updated_at message_count total_tokens workspace mood messages")
WORDS = ["user", "assistant", "system", "tool"]


def found_in(home: Path, **env: str) -> list[str]:
    host = Host(home, env)
    sources = [source for root in AGENT.roots(host) for source in AGENT.discover(root)]
    return [source.path.relative_to(home).as_posix() for source in sources]


def problems(path: Path) -> list[Problem]:
    return list(check_source(AGENT, AGENT.locate(path)))


# Places


@pytest.mark.seed("S0-1")
def test_saved_sessions_are_found_in_both_places(home: Path) -> None:
    for place in PLACES:
        write(home, saved(message()), place=place)
        write(home, saved(message()), "metadata.json", place)
    assert found_in(home) == [f"{place}/{name}" for place in PLACES for name in ("metadata.json", "the_bell.json")]
    elsewhere = write(home, saved(message()), place="elsewhere/emacs/sage/sessions")
    assert elsewhere.relative_to(home).as_posix() in found_in(home, XDG_CONFIG_HOME=str(home / "elsewhere"))


def test_what_lies_beside_them_is_no_session(home: Path) -> None:
    folder = write(home, saved(message())).parent
    for name in (".the_bell.json", "the_bell.json~", "#the_bell.json#", "the_bell.json.clew", "notes.md", "x.jsonl"):
        (folder / name).write_bytes(b"{}")
    (folder / "folder.json").mkdir()
    assert found_in(home) == [f"{PLACES[0]}/the_bell.json"]


def test_the_other_store_has_no_documents(home: Path) -> None:
    folder = home / ".emacs.d" / "sage" / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / "conversation.jsonl").write_bytes(b'{"role":"user","content":"x"}\n')
    (folder / "metadata.json").write_bytes(b"{}")
    (folder / "saved.json").write_bytes(pretty(saved(message())))
    write(home, saved(message()), "messages.json", ".sage/sessions")
    assert found_in(home) == [".emacs.d/sage/projects/-p/conversation.jsonl"]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.compress)])
def test_packed_ones_are_read(home: Path, suffix: str, pack: object) -> None:
    plain = write(home, saved(message(), message("assistant")))
    assert callable(pack)
    path = write(home, pack(plain.read_bytes()), f"the_bell.json{suffix}")
    assert len(found_in(home)) == 2
    document = document_of(AGENT, path)
    assert files_of(AGENT, document) == {"": plain.read_bytes()}
    assert document["messages"] == document_of(AGENT, plain)["messages"]
    assert AGENT.session_id(AGENT.locate(path)) == AGENT.session_id(AGENT.locate(plain))
    assert registry.claimant(path) is registry.get(AGENT.id)


def test_P10_a_packed_one_that_is_cut_off_is_read_as_far_as_it_goes(home: Path) -> None:
    said = [message(content="".join(chr(33 + (n * k) % 90) for k in range(9999))) for n in range(60)]
    packed = gzip.compress(pretty(saved(*said)))
    path = write(home, packed[: len(packed) // 2], "the_bell.json.gz")
    assert 0 < len(document_of(AGENT, path)["messages"]) < 60
    assert {"damaged-archive", "torn-tail"} <= {problem.code for problem in problems(path)}


def test_ids_come_from_the_place_and_not_from_the_home(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / home, saved(message()), name, place)
        for home in ("ada", "bob")
        for place in PLACES
        for name in ("a.json", "conversation.json")
    ]
    ids = [AGENT.session_id(AGENT.locate(path)) for path in paths]
    assert ids[:4] == ids[4:]
    assert len(set(ids)) == 4
    # A key that looks like an id does not make another session of it.
    write(tmp_path / "ada", saved(message(session_id="s-1", sessionId="s-2"), session_id="s-3"), "a.json")
    assert AGENT.session_id(AGENT.locate(paths[0])) == document_of(AGENT, paths[0])["session"]["id"] == ids[0]


def test_a_document_and_a_conversation_of_one_name_are_two_sessions(tmp_path: Path) -> None:
    lines, document = tmp_path / "a" / "b.jsonl", tmp_path / "a" / "b.json"
    lines.parent.mkdir()
    lines.write_bytes(b'{"role":"user","content":"x"}\n')
    document.write_bytes(pretty(saved(message())))
    assert AGENT.session_id(AGENT.locate(lines)) != AGENT.session_id(AGENT.locate(document))


@pytest.mark.parametrize("place", PLACES)
def test_it_goes_back_to_where_it_was(home: Path, place: str) -> None:
    document = document_of(AGENT, write(home, saved(message()), place=place))
    assert AGENT.target(header_of(document)) == f"{place}/the_bell.json"
    outside = document_of(AGENT, write(home, saved(message()), place="exported"))
    assert AGENT.target(header_of(outside)) == f"{PLACES[0]}/the_bell.json"


@pytest.mark.parametrize("name", ["...json", "x\0.json"])
def test_R01_a_hostile_name_leads_nowhere(home: Path, name: str) -> None:
    document = document_of(AGENT, write(home, saved(message())))
    document["session"]["source"]["path"] = f"/home/ada/.emacs.d/sage/sessions/{name}"
    with pytest.raises(UsageError):
        AGENT.target(header_of(document))


@pytest.mark.parametrize("path", ["/etc/sage/sessions/../../the_bell.json", "../../etc/sage/sessions/the_bell.json"])
def test_R01_a_hostile_base_is_not_believed(home: Path, path: str) -> None:
    document = document_of(AGENT, write(home, saved(message())))
    document["session"]["source"]["path"] = path
    assert AGENT.target(header_of(document)) == f"{PLACES[0]}/the_bell.json"


# Claims

OURS: dict[str, bytes] = {
    "as it is saved": pretty(saved(message())),
    "no messages yet": pretty(saved()),
    "compact": json.dumps(saved(message()), separators=(",", ":")).encode(),
    "keys backwards": pretty(dict(reversed(saved(message()).items()))),
    "byte order mark": b"\xef\xbb\xbf" + pretty(saved(message())),
    "unknown keys": pretty({"theme": {"id": 1}, **saved({"mood": "good", **message()})}),
    "torn": pretty(saved(message(), message("assistant")))[:-300],
    "a long message": pretty(saved(message(content="x" * 40_000))),
    "words of another agent": pretty(saved(message(content='{"sessionId":"a","projectHash":"b","messages":[]}'))),
}
OTHERS: dict[str, JSON] = {
    "a request": {"model": "m", "messages": [message()], "temperature": 0},
    "a request with a name": {"name": "n", "model": "m", "messages": [message()]},
    "a unified document": {"schema_version": "1.1", **saved(message())},
    "a chat of Gemini CLI": {"sessionId": "a", "projectHash": "b", "messages": [], "startTime": "", "lastUpdated": ""},
    "a saved chat of Gemini CLI": {"history": [{"role": "user", "parts": [{"text": "x"}]}]},
    "a rollout of Codex": {"session": {"id": "a", "instructions": ""}, "items": []},
    "an old session of Sage Agent": {"id": "a", **saved(message()), "token_usage": {}, "state": "active"},
    "metadata of a project": {"project_dir": "/p", "created_at": "", "message_count": 1, "total_size": 1},
    "a package": {"name": "x", "version": "1", "workspace": "y", "provider": "z"},
    "messages of another form": saved({"type": "user", "role": "user", "content": "x"}),
    "messages that are no list": saved(messages={"role": "user"}),
    "a list": [message()],
    "a message": message(),
    "text": "text",
}


@pytest.mark.parametrize("name", OURS)
def test_a_saved_session_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    path = tmp_path / "exported.json"
    path.write_bytes(OURS[name])
    claim, agent = registry.best_claim(path)
    assert (claim, agent) == (Claim.YES, registry.get(AGENT.id))
    (found,) = at_path(tmp_path)
    assert found.agent.id == AGENT.id


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_one_is_not_claimed(name: str) -> None:
    for content in (pretty(OTHERS[name]), json.dumps(OTHERS[name]).encode()):
        assert AGENT.claims(Path("x.json"), content[: 16 << 10]) is Claim.NO
        for cut in range(len(content)):
            assert AGENT.claims(Path("x.json"), content[:cut]) < Claim.YES


@pytest.mark.parametrize("content", [b"", b"\x00\x00", b"garbage\n", b"[1]\n", b'{"a":1}', b'{"name":"x"}'])
def test_in_its_place_it_is_a_session_whatever_it_holds(home: Path, content: bytes) -> None:
    path = write(home, content)
    assert AGENT.claims(path, content) > Claim.NO
    for place in (path, path.parent, home):
        (found,) = at_path(place)
        assert (found.agent.id, found.source.path) == (AGENT.id, path)


def test_messages_that_come_first_may_hide_the_rest(tmp_path: Path) -> None:
    long = {"messages": [message()] * 1000, **without(saved(), "messages")}
    assert AGENT.claims(tmp_path / "x.json", pretty(long)[: 16 << 10]) is Claim.MAYBE
    request = {"messages": [{"role": "user", "content": "x"}] * 1000, "model": "m"}
    assert AGENT.claims(tmp_path / "x.json", pretty(request)[: 16 << 10]) is Claim.NO
    assert AGENT.claims(tmp_path / "x.json", pretty({"messages": [message()]})) is Claim.NO


def test_documents_of_other_agents_stay_theirs(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    gemini = Path(__file__).parents[1] / "fixtures"
    for path in [*(tmp_path / "home").rglob("*.json*"), *gemini.rglob("*.json*")]:
        if not path.is_relative_to(FIXTURES) and path.is_file():
            with open_source(path) as stream:
                head = stream.read(16 << 10)
            is_line = path.name.removesuffix(".gz").removesuffix(".zst").endswith(".jsonl")
            assert is_line or AGENT.claims(path, head) is Claim.NO, path


def test_no_other_agent_claims_a_saved_session(home: Path) -> None:
    for name, content in OURS.items():
        path = write(home, content)
        for agent in registry.load_all():
            assert agent.id == AGENT.id or agent.claims(path, content[: 16 << 10]) is Claim.NO, (name, agent.id)


@given(st.binary(max_size=300))
def test_P15_claims_never_fail(head: bytes) -> None:
    for content in (head, b'{"messages":' + head, b'{"name":"x","messages":[' + head, b'{"' + head):
        assert AGENT.claims(Path("x.json"), content) in Claim


# What it says


def test_the_session(home: Path) -> None:
    path = write(home, saved(message("assistant"), message(timestamp="2026-01-11T17:05:00-0500")))
    session = document_of(AGENT, path)["session"]
    assert session["title"] == "the bell"
    assert session["workspace"] == "/home/ada/bell"
    assert (session["started_at"], session["ended_at"]) == ("2026-01-11T22:00:00Z", "2026-01-11T22:05:00Z")
    assert session["is_agent_session"] is False


def test_times_come_from_the_header_where_no_message_has_one(home: Path) -> None:
    session = document_of(AGENT, write(home, saved({"role": "user", "content": "x"})))["session"]
    assert (session["started_at"], session["ended_at"]) == ("2026-01-11T21:59:00Z", "2026-01-11T22:30:00Z")
    session = document_of(AGENT, write(home, saved(created_at=None, updated_at="soon")))["session"]
    assert (session["started_at"], session["ended_at"]) == (None, None)


def test_what_is_absent_stays_absent(home: Path) -> None:
    document = document_of(AGENT, write(home, {"messages": [message(), message("assistant", "Ding.")]}))
    assert document["session"]["title"] == "Hello."
    assert document["session"]["workspace"] == ""
    assert all("metadata" not in item for item in document["messages"])
    assert [record["kind"] for record in document["records"]] == ["state"]


@pytest.mark.parametrize("wrong", [None, 7, "", " ", ["x"], {"x": 1}])
def test_values_of_another_type_are_kept_and_say_nothing(home: Path, wrong: JSON) -> None:
    path = write(home, saved(message("assistant"), name=wrong, model=wrong, workspace=wrong, provider=wrong))
    document = document_of(AGENT, path)
    assert document["session"]["workspace"] == ""
    assert "title" not in document["session"]
    assert "metadata" not in document["messages"][0]
    assert round_trip(AGENT, path) == original(AGENT, path)


def test_replies_are_put_down_to_the_model_of_the_session(home: Path) -> None:
    own = message("assistant", model="other-model")
    path = write(home, saved(message(), message("assistant"), own, message("assistant", model=None)))
    document = document_of(AGENT, path)
    named = [item.get("metadata", {}).get("model", {}).get("name") for item in document["messages"]]
    assert named == [None, "gemini-2.0-flash-exp", "other-model", None]
    assert AGENT.facts(AGENT.locate(path)).models == {"gemini-2.0-flash-exp": 1, "other-model": 1}
    assert round_trip(AGENT, path) == original(AGENT, path)


@pytest.mark.seed("S0-33")
def test_the_estimate_of_all_tokens_is_kept_and_not_counted(home: Path) -> None:
    path = write(home, saved(message(), message("assistant"), total_tokens=12345))
    document = document_of(AGENT, path)
    assert next(AGENT.units(AGENT.locate(path))).native["total_tokens"] == 12345
    assert all("token_usage" not in item.get("metadata", {}) for item in document["messages"])
    total = AGENT.facts(AGENT.locate(path)).ledger.total()
    assert (total.calls, total.input_tokens, total.output_tokens) == (0, None, None)


@pytest.mark.seed("S0-10", "S0-17")
def test_messages_are_those_of_a_conversation(home: Path) -> None:
    call = {"name": "ring", "args": {"times": 2}, "result": "ding", "success": None}
    said = [message(role) for role in ("system", "user")]
    said += [message("assistant", "", tool_calls=[call]), message("tool", "done", tool_call_id="c9"), message("oracle")]
    path = write(home, saved(*said))
    document = document_of(AGENT, path)
    assert [item["role"] for item in document["messages"]] == ["system", "user", "assistant", "user", "user"]
    kinds = [block["type"] for item in document["messages"] for block in item["content"]]
    assert kinds == ["text", "text", "tool_use", "tool_result", "tool_result"]
    assert [record["kind"] for record in document["records"]] == ["state", "other"]
    uuids = [item["uuid"] for item in document["messages"]]
    assert [item.get("parent_uuid") for item in document["messages"]] == [None, *uuids[:-1]]
    assert document == document_of(AGENT, path)
    assert round_trip(AGENT, path) == original(AGENT, path)


def test_the_same_words_in_two_sessions_are_two_messages(home: Path) -> None:
    first = document_of(AGENT, write(home, saved({"role": "user", "content": "x"}), "a.json"))
    second = document_of(AGENT, write(home, saved({"role": "user", "content": "x"}), "b.json"))
    assert first["messages"][0]["uuid"] != second["messages"][0]["uuid"]


def test_messages_that_stand_backwards_are_read_forwards(home: Path) -> None:
    lines = [message("assistant" if n % 2 else "user", str(n), timestamp=f"2026-01-11T22:00:0{n}Z") for n in range(4)]
    path = write(home, saved(*reversed(lines)))
    said = {item["uuid"]: item["content"][0]["text"] for item in document_of(AGENT, path)["messages"]}
    facts = AGENT.facts(AGENT.locate(path))
    assert [said[uuid] for uuid in facts.tree.graph().active_path] == ["0", "1", "2", "3"]
    assert round_trip(AGENT, path) == original(AGENT, path)


# Bytes

LAYOUTS: dict[str, bytes] = {
    "two spaces": pretty(saved(message(), message("assistant"))),
    "line feed behind": pretty(saved(message())) + b"\n",
    "four spaces": json.dumps(saved(message(), message()), indent=4).encode(),
    "tabs": json.dumps(saved(message()), indent="\t").encode(),
    "one line": json.dumps(saved(message(), message())).encode(),
    "compact": json.dumps(saved(message(), message()), separators=(",", ":")).encode(),
    "messages first": pretty({"messages": [message()], **saved()}),
    "messages last": pretty({**without(saved(), "messages"), "messages": [message(), message()]}),
    "no messages": pretty(saved()),
    "P07 CRLF": pretty(saved(message(), message())).replace(b"\n", b"\r\n"),
    "P07 byte order mark": b"\xef\xbb\xbf" + pretty(saved(message())),
    "P07 blank lines around": b"\n \n" + pretty(saved(message())) + b"\n\n",
    "odd gaps": b'{ "name" :"x","messages":[ {"role":"user","content":"a"} ,\n\n{"role":"user","content":"b"}]}',
    "other escapes": b'{"name":"\\u00e9\\/","messages":[{"role":"user","content":"\\u00e9"}]}',
    "P06 NUL run": pretty(saved(message())) + b"\0" * 300,
    "P09 another document behind": pretty(saved(message())) * 2,
    "junk behind": pretty(saved(message())) + b"}\nand more",
    "P01 too deep": b'{"name":"x","messages":[{"role":"user","content":' + b"[" * 5000 + b"]" * 5000 + b"}]}",
    "P01 too deep around": b'{"name":' + b"[" * 5000 + b"]" * 5000 + b',"messages":[{"role":"user","content":"x"}]}',
    "P02 a huge number around": b'{"name":"x","total_tokens":' + b"9" * 5000 + b',"messages":[],"message_count":-0}',
    "P02 huge numbers": b'{"messages":[{"role":"user","content":"x","n":' + b"9" * 40 + b',"m":1E5,"o":1.50}],"n":1.0}',
    "P03 keys that stand twice": b'{"name":"a","name":"b","messages":[{"role":"user","role":"tool","content":"x"}]}',
    "P03 messages that stand twice": b'{"messages":[{"role":"user","content":"x"}],"messages":[{"role":"tool"}],"a":1}',
    "P04 no number": b'{"total_tokens":NaN,"messages":[{"role":"user","content":Infinity}]}',
    "P05 no UTF-8": b'{"name":"\xff","messages":[{"role":"user","content":"\xfe"},{"role":"user","content":"b"}]}',
    "P05 half a pair": b'{"name":"\\ud83c","messages":[{"role":"assistant","content":"\\udf0a"}],"model":"\\ud83c"}',
    "elements that are no objects": pretty(saved(1, None, "x", [message()], message())),
    "messages are no list": pretty(saved(messages={"role": "user"})),
    "no list of messages": pretty({"name": "x", "model": "m"}),
    "a list": pretty([message()]),
    "a number": b"42",
    "a string": b'"text"\n',
    "a line of a conversation": b'{"role":"user","content":"x"}\n{"role":"user","content":"y"}\n',
    "no JSON": b"hello\n",
    "white space": b" \n\n",
    "nothing": b"",
}


@pytest.mark.seed("S2-5")
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_byte_comes_back(name: str, home: Path) -> None:
    path = write(home, LAYOUTS[name])
    document = document_of(AGENT, path)
    msgspec.convert(document, Document)
    assert round_trip(AGENT, path) == original(AGENT, path)
    assert problems(path) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two spaces", "compact", "P07 CRLF", "messages first", "odd gaps"])
def test_P09_cut_anywhere_every_complete_message_is_read(name: str, home: Path) -> None:
    whole = LAYOUTS[name]
    path = write(home, whole)
    source = AGENT.locate(path)
    ends = [unit.stop for unit in AGENT.units(source) if unit.is_message]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        document = document_of(AGENT, path)
        assert round_trip(AGENT, path) == original(AGENT, path)
        assert len(document["messages"]) == sum(end <= cut for end in ends)


def test_what_can_be_read_of_a_torn_one_is_known(home: Path) -> None:
    path = write(home, pretty(saved(message(), message("assistant", "Ding.")))[:-250])
    document = document_of(AGENT, path)
    assert document["session"]["title"] == "the bell"
    assert document["messages"][0]["content"] == [{"type": "text", "text": "Hello."}]
    assert "torn-tail" in [problem.code for problem in problems(path)]


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from(HEADER_KEYS), values(KEYS, WORDS), max_size=6),
    st.lists(records(KEYS, WORDS) | values(KEYS, WORDS), max_size=4),
    st.sampled_from([2, 4, None, 0, 1]),
    st.sampled_from([b"", b"\n", b"\r\n"]),
    st.booleans(),
)
def test_any_json_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    header: dict[str, JSON],
    messages: list[JSON],
    indent: int | None,
    end: bytes,
    is_plain: bool,
) -> None:
    path = tmp_path_factory.mktemp("any") / "any.json"
    content = json.dumps({**header, "messages": messages}, indent=indent, ensure_ascii=not is_plain)
    path.write_bytes(content.encode("utf-8", "surrogatepass") + end)
    document = document_of(AGENT, path)
    msgspec.convert(document, Document)
    assert round_trip(AGENT, path) == original(AGENT, path)
    assert problems(path) is not None


@pytest.mark.slow
@given(st.data())
def test_P15_a_byte_that_is_not_what_it_was_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = (FIXTURES / "tide-tables.json").read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.sampled_from([0xFF, 0xC3, 0x80, *b'"\\{}[],:x0 \x00\n']))
    path = tmp_path_factory.mktemp("flipped") / "flipped.json"
    path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
    document = document_of(AGENT, path)
    msgspec.convert(document, Document)
    assert round_trip(AGENT, path) == original(AGENT, path)
    assert AGENT.facts(AGENT.locate(path)).messages == len(document["messages"])


class TestConformance(AgentConformance):
    agent: ClassVar[Agent] = AGENT
    fixtures: ClassVar[list[Path]] = sorted(FIXTURES.glob("*.json"))


# Checks


def test_a_sound_session_has_no_problems() -> None:
    assert problems(FIXTURES / "tide-tables.json") == []


@pytest.mark.seed("S0-35")
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"message_count": 3}, [("metadata-mismatch", "$.message_count")]),
        ({"message_count": None}, []),
        ({"message_count": "2"}, [("wrong-type", "$.message_count")]),
        ({"message_count": True}, [("wrong-type", "$.message_count")]),
        ({"total_tokens": 1.5, "name": 7}, [("wrong-type", "$.name"), ("wrong-type", "$.total_tokens")]),
        ({"created_at": "soon", "updated_at": None}, [("bad-timestamp", "$.created_at")]),
        ({"messages": 7, "message_count": 0}, [("wrong-type", "$.messages"), ("empty-session", None)]),
    ],
)
def test_what_it_says_of_itself_is_checked(home: Path, more: JSON, expected: JSON) -> None:
    path = write(home, saved(message(), message("assistant"), **more))
    found = problems(path)
    assert [(problem.code, problem.path) for problem in found] == expected
    assert {problem.file for problem in found} <= {str(path)}


def test_what_it_does_not_say_is_no_mismatch(home: Path) -> None:
    assert problems(write(home, without(saved(message()), "message_count", "total_tokens"))) == []


@pytest.mark.seed("S0-43", "S0-44", "S0-45")
def test_messages_are_checked_in_their_places(home: Path) -> None:
    wrong = [message("oracle"), message(content=""), {"role": "user", "content": "x"}, message(timestamp="soon"), 7]
    path = write(home, saved(message(), *wrong))
    content = path.read_bytes()
    found = [problem for problem in problems(path) if problem.code not in ("unknown-type", "unknown-key")]
    codes = ["bad-role", "bad-content", "time-missing", "bad-timestamp", "not-an-object"]
    assert [problem.code for problem in found] == codes
    for problem, element in zip(found, wrong, strict=True):
        assert problem.line is not None
        assert json.loads(content[problem.start : problem.end]) == element
        assert content.count(b"\n", 0, problem.start) + 1 == problem.line


def test_P03_a_key_that_stands_twice_is_reported(home: Path) -> None:
    path = write(home, b'{"name":"x","messages":[{"role":"user","content":"a","content":"b"}]}')
    assert "duplicate-key" in [problem.code for problem in problems(path)]
