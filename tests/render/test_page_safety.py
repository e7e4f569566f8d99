"""Nothing in a session can do anything in a page: every field of every agent, seen by an HTML5 parser."""

from __future__ import annotations

import base64
import copy
import re
import time
from collections import Counter
from collections.abc import Iterator
from html import unescape
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.render.outline import decoded_size
from clew.render.page.ansi import ansi_to_html
from clew.render.page.frame import assets
from clew.render.page.index import Entry, index
from clew.render.page.markdown_html import TAGS, markdown_to_html
from clew.render.text_safety import escape, escape_line, one_line, visible
from tests.demo_home import write_small_demo
from tests.render.hostile import FENCES, HOSTILE, LINKS, MARKUP, poisoned
from tests.render.pages import elements, faults, page, parse, reply, sessions, words

HEAD = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_small_demo(folder)
    return folder


def call(key: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "tool_id": key, "tool_name": name, "input": given}


def block_kinds(text: str) -> list[dict[str, Any]]:
    """A message of each kind with the text wherever text can be."""
    offered = {"label": text, "description": text, "preview": text}
    content: list[dict[str, Any]] = [
        {"type": "text", "text": text},
        {"type": "thinking", "thinking": text},
        call("a", text, command=text, description=text),
        call("b", "Edit", file_path=text, old_string=text, new_string=f"{text}\nx"),
        call("c", "Write", file_path=f"{text}.py", content=text),
        call("d", "T", todos=[{"content": text, "status": text}]),
        call("f", "Q", questions=[{"question": text, "header": text, "options": [offered]}]),
        call("e", "U", **{text: text, "x": {text: [text]}, "y": text * 9}),
        {"type": "image", "media_type": text, "encoding": "base64", "image": text},
        {"type": "image", "media_type": "image/png", "encoding": "base64", "image": text},
        {"type": "image", "media_type": text, "encoding": "url", "image": text},
        {"type": "document", "media_type": text, "encoding": "text", "document": text, "title": text},
        {"type": "unknown", "value": {"type": text, text: text}},
    ]
    results: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_id": key, "tool_name": text, "output": text} for key in "abcdef"
    ]
    results[0]["is_error"] = True
    picture = {"type": "image", "encoding": "base64", "image": text}
    results[1]["output"] = [{"type": "text", "text": text}, picture, text]
    results[2]["output"] = {text: text}
    metadata = {"model": {"name": text}, "message_id": text, "git_branch": text, "cwd": text}
    return [
        {"index": 1, "uuid": text, "role": "user", "timestamp": text, "content": [{"type": "text", "text": text}]},
        {"index": 2, "uuid": "u2", "role": "assistant", "content": content, "metadata": metadata},
        {"index": 3, "role": "user", "content": results},
        {"index": 4, "role": "user", "content": [{"type": "text", "text": text}], "metadata": {"is_meta": True}},
        {"index": 5, "role": "system", "content": [{"type": "text", "text": text}]},
        {
            "index": 6,
            "role": "user",
            "content": [{"type": "text", "text": f"<system-reminder>{text}</system-reminder>"}],
        },
    ]


def header(text: str) -> dict[str, Any]:
    links = [{"session_id": text, "agent_id": text, "tool_id": "e"}, {"session_id": text, "tool_id": None}]
    return {
        "id": text, "title": text, "workspace": text, "started_at": text, "ended_at": text, "parent_session_id": text,
        "agent_id": text, "source": {"type": "local", "host": text, "path": text}, "subagents": links,
    }  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_H01_hostile_text_in_every_field_is_text(text: str) -> None:
    assert faults(page(block_kinds(text), header(text), agent=text)) == []


@pytest.mark.parametrize(
    "text", ["\x00", "a\rb", "\x1b[2J", "\x7f\x9b", "\u202e", "\u200bx", "\ud800", "&#8203;&#x202e;", "\ufdd0"]
)
def test_H01_nothing_invisible_comes_through_from_any_field(text: str) -> None:
    html = page(block_kinds(text), header(text), agent=text)
    assert visible(html) == html
    assert faults(html) == []


ANY_TEXT = st.text(st.one_of(st.characters(codec=None), st.sampled_from("&<>\"' \n\r\t\x1b\u200dab👩")), max_size=60)


@given(ANY_TEXT)
def test_escaped_text_is_read_as_the_visible_text(value: str) -> None:
    for html, shown in ((escape(value), visible(value)), (escape_line(value), one_line(value))):
        assert not re.search("[<>\"']", html)
        assert unescape(html) == shown


@pytest.mark.slow
def test_H01_hostile_text_in_every_field_of_every_agent(home: Path) -> None:
    agents: Counter[str] = Counter()
    poison: Iterator[str] = cycle(HOSTILE)
    for session in sessions(home):
        messages = [unit.value for unit in session.units() if unit.is_message]
        for message in messages:
            message.pop("extensions", None)
        poisoned_messages = [poisoned(copy.deepcopy(message), poison) for message in messages]
        html = page(poisoned_messages, poisoned(copy.deepcopy(session.session_object), poison))
        assert faults(html) == [], session
        agents[session.agent.id] += len(messages)
    assert len(agents) == 5 and min(agents.values()) > 0


def test_H01_the_index_is_as_safe() -> None:
    for text in HOSTILE:
        entry = Entry("p.html", text, text, text, text, text, text, 1, 1, None)
        child = Entry("q.html", "child", text, text, text, text, text, 1, 1, text)
        assert faults("".join(index([entry, child])), ["p.html", "q.html"]) == []


@pytest.mark.parametrize("text", [*MARKUP[:3], "a < b && c > d", "<b>bold</b>"])
def test_H01_what_looks_like_markup_is_read_as_it_was_written(text: str) -> None:
    tree = parse(page([reply({"type": "text", "text": text})]))
    (said,) = elements(tree, kind="p")
    assert "".join(words(said).split()) == "".join(text.split())


@pytest.mark.parametrize("text", LINKS)
def test_H02_only_harmless_schemes_are_links(text: str) -> None:
    html = markdown_to_html(text)
    for address in re.findall(r'(?:href|src)="([^"]*)"', html):
        assert address.startswith("https://good.example")
    assert "<img" not in html
    assert html.count("<a ") == html.count('rel="noopener noreferrer"')


@given(st.text(st.sampled_from("ab 1.\n-#>*_`[](:/)!<&|~=+\\")))
def test_H02_no_markdown_makes_other_elements(text: str) -> None:
    html = markdown_to_html(text)
    assert set(re.findall(r"<(\w+)", html)) <= TAGS
    assert not re.search(r"<[^>]* (?!href=|rel=|start=|class=\"x-)", html)


def test_H11_deeply_nested_markdown_is_shown_as_its_source() -> None:
    assert markdown_to_html("> " * 90 + "<b>").count("<blockquote>") == 90
    assert markdown_to_html("> " * 110 + "<b>") == f"<pre>{'&gt; ' * 110}&lt;b&gt;</pre>"


def test_H02_good_links_are_links() -> None:
    html = markdown_to_html('[a](https://x.example/?a=1&b=2 "t") [b](mailto:a@b.c) [c](http://y.example)')
    assert re.findall(r'href="([^"]*)"', html) == ["https://x.example/?a=1&amp;b=2", "mailto:a@b.c", "http://y.example"]


def test_H04_the_page_may_fetch_nothing(home: Path) -> None:
    html = page([reply({"type": "text", "text": "hello"})])
    (policy,) = HEAD.findall(html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]+'", rules["script-src"]) and rules["base-uri"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]+'", rules["style-src"]) and rules["form-action"] == "'none'"
    style, script, _ = assets()
    assert "url(" not in style and "@import" not in style
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|innerHTML|insertAdjacent|eval\(|https?://", script)
    assert "</script" not in script and "</style" not in style


DRAWING = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>"
SVG = base64.b64encode(DRAWING).decode()


@pytest.mark.parametrize("spelled", [" QUJD\nRA== \n", "QUJD\u00a0RA==", "QUJDRA=="])
def test_H05_space_in_a_picture_does_not_reach_the_page(spelled: str) -> None:
    tree = parse(page([reply({"type": "image", "media_type": "image/png", "encoding": "base64", "image": spelled})]))
    (image,) = elements(tree, tag="img")
    assert image.get("src") == "data:image/png;base64,QUJDRA=="


@pytest.mark.parametrize("kind", ["image/svg+xml", "image/png", "IMAGE/PNG"])
def test_H05_pictures_are_only_ever_the_source_of_an_image(kind: str) -> None:
    tree = parse(page([reply({"type": "image", "media_type": kind, "encoding": "base64", "image": SVG})]))
    (image,) = elements(tree, tag="img")
    assert image.get("src") == f"data:{kind.lower()};base64,{SVG}" and not list(elements(tree, tag="svg"))


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("text/html", SVG),
        ("image/png", '"><script>'),
        ("image/png", "a" * (12 << 20)),
        ("image/x-evil", SVG),
        ("image/png", "QUJ=D"),
        ("image/png", "QQ= ="),
        ("image/png", "QUJD==="),
        ("image/png", "QUJ\u00c4"),
    ],
)
def test_H05_other_pictures_are_words(kind: str, content: str) -> None:
    html = page([reply({"type": "image", "media_type": kind, "encoding": "base64", "image": content})])
    assert not list(elements(parse(html), tag="img")) and "image, " in html and len(html) < 100_000


def test_H06_ids_are_made_here(home: Path) -> None:
    for text in ("talk", "keys", "q", "m1", "document", "<a id=talk>"):
        assert faults(page(block_kinds(text), header(text))) == []


def test_H06_an_id_is_given_once() -> None:
    calls = [{"type": "tool_use", "tool_id": key, "tool_name": "T", "input": {}} for key in "abc"]
    answers = [{"type": "tool_result", "tool_id": key, "output": "x"} for key in "abcz"]
    both = [*answers, {"type": "text", "text": "and words"}]
    html = page([reply(*calls[:1]), reply(*calls[1:], index=2), reply(*both, index=3, role="user")])
    assert faults(html) == [] and html.count('id="m3"') == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["text", "thinking", "tool_result", "tool_use", "injected", "patch"])
def test_H11_a_huge_message_is_cut_and_quickly(kind: str) -> None:
    huge = "one line of it <b>\n" * (100_000_000 // 19)
    blocks: dict[str, dict[str, Any]] = {
        "text": {"type": "text", "text": huge},
        "thinking": {"type": "thinking", "thinking": huge},
        "tool_result": {"type": "tool_result", "tool_id": "x", "output": huge},
        "tool_use": {"type": "tool_use", "tool_id": "x", "tool_name": "T", "input": {"command": huge}},
        "injected": {"type": "text", "text": huge},
        "patch": {"type": "tool_use", "tool_id": "x", "tool_name": "P", "input": {"file_path": "a", "content": huge}},
    }
    message = reply(blocks[kind], role="system" if kind == "injected" else "assistant")
    began = time.process_time()
    html = page([message])
    assert time.process_time() - began < 5
    assert len(html) < 1_000_000 and "more characters" in html


LONG_LINES = [
    "x" * 1_000_000, "[" * 100_000, "`" * 100_000, "*a " * 100_000, "> " * 50_000, "- " * 50_000,
    "*a _b " * 15_000 + "b_ a* " * 15_000, "\x1b[31m" * 100_000,
]  # fmt: skip


@pytest.mark.slow
def test_H11_one_line_without_an_end_is_no_slower() -> None:
    for text in LONG_LINES:
        began = time.process_time()
        html = page([reply({"type": "text", "text": text}, {"type": "tool_result", "tool_id": "x", "output": text})])
        assert time.process_time() - began < 5, text[:10]
        assert faults(html[:0] or html) == [] if len(html) < 300_000 else True


@pytest.mark.parametrize("base64", ["", "\n", "=", "==", "QUJDR", "QUJDR==", "QUJD=", "QUI==", "QQ="])
def test_a_picture_that_no_browser_shows_is_words(base64: str) -> None:
    html = page([reply({"type": "image", "encoding": "base64", "media_type": "image/png", "image": base64})])
    assert "<img" not in html and "not shown" in html and "-1 B" not in html


@pytest.mark.parametrize("base64", ["QQ==", "QUI=", "QUJD", "QQ", "QUI", "QU\nJD", "QUI=\n"])
def test_a_picture_is_shown_with_its_padding_or_without(base64: str) -> None:
    html = page([reply({"type": "image", "encoding": "base64", "media_type": "image/png", "image": base64})])
    assert f'src="data:image/png;base64,{"".join(base64.split())}"' in html


def test_lines_of_base64_do_not_count() -> None:
    whole, lines = "QUJDREVG", "QUJD\r\nREVG\r\n"
    assert decoded_size(whole) == decoded_size(lines) == 6
    assert decoded_size("QUI=") == 2 and decoded_size("=") == decoded_size("") == 0


def test_colours_are_classes_and_all_else_is_spelled_out() -> None:
    assert ansi_to_html("a\x1b[1;31mred\x1b[0m b") == 'a<span class="ab f1">red</span> b'
    assert ansi_to_html("\x1b[38;5;196mx\x1b[39my") == '<span class="f9">x</span>y'
    assert ansi_to_html("\x1b[48;2;0;0;250mx") == '<span class="b12">x</span>'
    assert ansi_to_html("\x1b[2J\x1b]0;t\x07") == "␛[2J␛]0;t␇"
    assert ansi_to_html('\x1b[31m<b>"') == '<span class="f1">&lt;b&gt;&#34;</span>'
    assert ansi_to_html("\x1b[" + "9;" * 30 + "m\x1b[m").count("<") == 0
    assert "\x1b" not in ansi_to_html("\x1b[31mx" * 6_000)


def test_markdown_is_markdown() -> None:
    html = markdown_to_html(
        "# Title\n\nA **bold** `a<b`, ~~gone~~.\n\n```python\nif a < b: 0\n```\n\n3. x\n\n| a |\n|--:|\n| 1 |"
    )
    assert "<h3>Title</h3>" in html and "<strong>bold</strong>" in html and "<code>a&lt;b</code>" in html
    assert '<code class="x-python">if a &lt; b' in html and '<ol start="3">' in html
    assert "<del>gone</del>" in html and "<th>a</th>" in html


def test_samples_are_many() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 40
    assert list(islice(cycle(FENCES), 2)) == list(FENCES[:2])
