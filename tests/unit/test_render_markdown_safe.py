"""Foreign text in our Markdown: it keeps its Markdown, and never reaches beyond its own place."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from clew.render.markdown import markdown
from clew.render.markdown_safe import code, fence, plain, quote, safe_markdown
from clew.render.text_safety import one_line, visible

PARSERS = [MarkdownIt("commonmark"), MarkdownIt("commonmark").enable("table").enable("strikethrough")]
ANCHORS = {"</a>", *(f'<a id="m{index}">' for index in range(1, 5))}
SECTIONS = ["1 · user", "2 · assistant", "4 · user"]

FRAGMENTS = (
    "``` ```` ~~~ ` `` <!-- --> <script> </script> <b> <? <x <https://a.b> === --- - | |-|-| [a]:_b ![x](y) "
    "foo py * _ \\ # ## > " + '<a_id="m1">'
).split() + ["\n"] * 6 + ["\n\n"] * 3 + [
    " ", "  ", "   ", "    ", "\t", "- ", "* ", "+ ", "1. ", "7) ", "> ", "# x", "## ", "- ```", "  ```", "    ```",
    "1. ```\n", "- > ", "| a ", "[a]: b", "\r", "\r\n", "\x0b", "\u2028",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=25).map("".join)


def all_tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def export(text: str) -> str:
    """A session with the text in every place."""
    words, thought = {"type": "text", "text": text}, {"type": "thinking", "thinking": text}
    call = {"type": "tool_use", "tool_id": "a", "tool_name": text, "input": {"command": text, "description": text}}
    result = {"type": "tool_result", "tool_id": "a", "tool_name": text, "output": text}
    messages: list[dict[str, Any]] = [
        {"index": 1, "role": "user", "content": [words], "metadata": {"origin": "human"}},
        {"index": 2, "role": "assistant", "content": [thought, words, call]},
        {"index": 3, "role": "user", "content": [result]},
        {"index": 4, "role": "user", "content": [{"type": "text", "text": "the end"}]},
    ]
    session = {"id": text, "title": text, "workspace": text, "source": {"path": text}, "parent_session_id": text}
    return "".join(markdown(session, iter(messages)))


@given(HOSTILE)
@example("```\nnever closed")
@example("- ```\n  in a list\n# out of it")
@example("foo\n2. ```\n   # no list, no fence")
@example("   ```\n# still in the fence?\n   ```")
@example("> ```\n> quoted\n## not quoted")
@example("- - ```\n    x\n    ```\n    <!--")
@example("\t# a tab behind a quotation mark")
@example("a\n````| b -->\n|-|-|\n## c````")
@example("`one\n` <b> `two`\n\n| ` | <b> ` |\n|-|-|")
def test_H07_content_cannot_change_the_structure(text: str) -> None:
    if not text.strip():
        return
    body = export(text).split("\n---\n", 1)[1]
    for parser in PARSERS:
        tokens = parser.parse(body)
        heads = [at for at, token in enumerate(tokens) if token.tag in ("h1", "h2") and token.nesting == 1]
        assert [tokens[at].level for at in heads] == [0] * 4
        assert [tokens[at + 1].content for at in heads[1:]] == SECTIONS
        html = [token.content for token in all_tokens(tokens) if token.type in ("html_block", "html_inline")]
        assert set(html) <= ANCHORS and len(html) == 8
        assert not [token for token in all_tokens(tokens) if token.type == "image"]
        whole = visible(text) if visible(text).endswith("\n") else visible(text) + "\n"
        fences = [token.content for token in tokens if token.type == "fence" and token.level == 0]
        assert fences.count(whole) >= 2, "command and output stand in their fences"


@given(st.one_of(st.text(), HOSTILE), st.sampled_from(["", "sh", "diff", "a`b", "x\ny"]))
def test_H07_content_cannot_close_its_fence(text: str, language: str) -> None:
    tokens = MarkdownIt("commonmark").parse(fence(text, language) + "\n\nafter\n")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content.removesuffix("\n") == visible(text).removesuffix("\n")
    assert tokens[0].info in ("", "sh", "diff")


@given(st.one_of(st.text(), HOSTILE))
def test_H07_names_stay_on_their_line(text: str) -> None:
    parser = MarkdownIt("commonmark")
    for written in (f"# {plain(text) or 'x'}", f"**Call** {code(text)} · {plain(text)} end"):
        tokens = parser.parse(written)
        assert len(tokens) == 3
        kinds = {token.type for token in tokens[1].children or ()}
        assert kinds <= {"text", "text_special", "code_inline", "strong_open", "strong_close", "entity"}
    spans = parser.parse(code(text))[1].children or []
    assert [span.type for span in spans] == ["code_inline"]
    assert spans[0].content.strip() == one_line(text)


@given(HOSTILE)
def test_H07_a_quotation_holds_all_of_its_text(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(quote("x\n\n" + safe_markdown(text, quoted=True)) + "\n\nafter\n")
    outside = [token for token in tokens if token.level == 0 and token.nesting >= 0]
    assert [token.type for token in outside] == ["blockquote_open", "paragraph_open"]


ORDINARY = """\
Here is **what** I did, with `List<int>` and a [link](https://example.org):

1. First:

   ```python
   if a < b:  # <- here
       print("<b>")
   ```

2. Second

> quoted `code`

| a | b |
|---|---|
| 1 | 2 |"""


def test_ordinary_markdown_stays_as_it_is() -> None:
    assert safe_markdown(ORDINARY) == ORDINARY
    fenced = "```html\n<!-- kept -->\n# kept\n\tkept\n```"
    assert safe_markdown(fenced) == fenced
    indented = "Look:\n\n    <b> # kept\n\n    kept"
    assert safe_markdown(indented) == indented


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("# a\n### b\n###### c", "### a\n##### b\n###### c"),
        ("a\n===", "a\n\\==="),
        ("a\n---\nb", "a\n\n---\nb"),
        ("- # a", "- ### a"),
        ("<div>x</div>", "\\<div>x\\</div>"),
        ("a <b and c < d, x<3", "a \\<b and c < d, x<3"),
        ("<https://example.org>", "<https://example.org>"),
        ("[a]: http://x", "[a]\\: http://x"),
        ("![a](b)", "\\![a](b)"),
        ("```\nopen", "```\nopen\n```"),
        ("- ```\n  open\nout", "- ```\n  open\n  ```\nout"),
        ("> a\nlazy", "> a\n\nlazy"),
        ("\n\na\n\n", "a"),
        ("#hashtag", "#hashtag"),
    ],
)
def test_what_is_changed(text: str, safe: str) -> None:
    assert safe_markdown(text) == safe


@pytest.mark.parametrize(
    "text",
    [
        "<a" * 250_000,
        "`a` " * 100_000,
        ">" * 300_000,
        "- " * 200_000,
        "|-" * 200_000 + "x",
        "\\" * 300_000,
        " ".join("`" * n for n in range(700)),
        "x\n" * 100_000,
    ],
    ids=lambda text: ascii(text[:6]),
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    short, long = (_cost(text[: len(text) // parts]) for parts in (16, 2))
    # Eight times as much: where it grew with the square, it would be sixty-four times the work.
    assert long < 24 * max(short, 0.001)


def _cost(text: str) -> float:
    """Processor seconds, the least of some: what else the machine does is not counted."""
    costs = []
    for _ in range(2):
        began = time.process_time()
        safe_markdown(text)
        costs.append(time.process_time() - began)
    return min(costs)
