"""Pages from the command line: one, many, a site; what a page carries comes back; what is masked stays masked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from clew.host import Host
from clew.library import Library
from clew.render.page.frame import CARRIED
from tests.cli.running import FORKED, LATEST, WITH_AGENTS, clew
from tests.render.pages import elements, faults, parse, words
from tests.unit.samples import claude_line

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_one_session_is_one_file(demo: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.html"
    assert clew("--home", demo, "export", LATEST, "--to", "html", "-o", target).code == 0
    html = target.read_text(encoding="utf-8")
    assert faults(html) == []
    assert clew("--home", demo, "export", LATEST, "--to", "html").raw == target.read_bytes()
    again = clew("--home", demo, "export", LATEST, "--to", "html", "-o", target)
    assert again.code == 6 and "--force" in again.err


def test_sub_agents_stand_inside_the_page_of_their_session(demo: Path, tmp_path: Path) -> None:
    html = clew("--home", demo, "export", WITH_AGENTS, "--to", "html").out
    assert faults(html) == []
    inside = list(elements(parse(html), kind="sub"))
    assert len(inside) == 2 and all(next(elements(one, tag="article")).get("id") for one in inside)


@pytest.mark.slow
def test_a_site_has_a_page_for_each_session_and_an_index(demo: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    ran = clew("--home", demo, "export", "--site", site)
    assert ran.code == 0 and "23 sessions, 5 sub-agents in" in ran.err
    names = {path.name for path in site.iterdir()}
    assert len(names) == 29 and "index.html" in names
    for path in site.iterdir():
        assert faults(path.read_text(encoding="utf-8"), names) == [], path
    tree = parse((site / "index.html").read_text(encoding="utf-8"))
    linked = {link.get("href") for link in elements(tree, tag="a")} - {"#talk"}
    assert linked == names - {"index.html"}
    parent = (site / f"claude-code-{WITH_AGENTS}.html").read_text(encoding="utf-8")
    subagents = [name for name in names if f'href="{name}"' in parent and "agent-a" in name]
    assert len(subagents) == 2 and 'href="index.html"' in parent
    assert clew("--home", demo, "export", "--site", site).code == 6
    assert clew("--home", demo, "export", "--site", site, "--force").code == 0


def test_several_pages_go_to_a_folder(demo: Path, tmp_path: Path) -> None:
    assert clew("--home", demo, "export", LATEST, FORKED, "--to", "html", "-o", tmp_path / "out").code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        f"claude-code-{one}.html" for one in (LATEST, FORKED)
    }
    assert clew("--home", demo, "export", LATEST, FORKED, "--to", "html").code == 2


@pytest.mark.parametrize(
    "words_",
    [
        ["--site", "x", "--to", "markdown"],
        ["--site", "x", "-o", "y"],
        ["--carry"],
        ["--carry", "--to", "markdown"],
    ],
)
def test_options_that_contradict_each_other_are_refused(demo: Path, words_: list[str]) -> None:
    assert clew("--home", demo, "export", *words_).code == 2


@pytest.mark.slow
def test_H03_a_page_can_carry_its_document_and_gives_it_back(demo: Path, tmp_path: Path) -> None:
    for session in Library(Host.at(demo)).sources():
        target = tmp_path / "x.html"
        options = ("--to", "html", "--carry", "--redact", "none", "--force")
        assert clew("--home", demo, "export", session.path, *options, "-o", target).code == 0
        assert faults(target.read_text(encoding="utf-8")) == []
        back = clew("import", target, "--stdout")
        assert (back.code, back.raw) == (0, session.path.read_bytes()), session


def test_H03_what_would_end_the_element_is_carried_too(tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script> \u2028 \u2029 <!-- & ]]> \\u003c"
    home = _home(tmp_path, hostile)
    target = tmp_path / "x.html"
    assert clew("--home", home, "export", "--to", "html", "--carry", "--redact", "none", "-o", target).code == 0
    assert faults(target.read_text(encoding="utf-8")) == []
    (source,) = home.rglob("*.jsonl")
    assert clew("import", target, "--stdout").raw == source.read_bytes()


def test_a_page_without_a_document_says_so(demo: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.html"
    clew("--home", demo, "export", LATEST, "--to", "html", "-o", target)
    ran = clew("import", target, "--stdout")
    assert ran.code == 4 and "--carry" in ran.err
    target.write_text(target.read_text(encoding="utf-8").replace("<footer>", f"{CARRIED}!!</script><footer>"))
    assert clew("import", target, "--stdout").code == 4
    long = f"{CARRIED}{'!' * 5_000_000}</script><footer>"
    target.write_text(target.read_text(encoding="utf-8").replace("<footer>", long).replace(f"{CARRIED}!!</script>", ""))
    damaged = clew("import", target, "--stdout")
    assert damaged.code == 4 and "damaged" in damaged.err


def test_pages_are_masked_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    home = _home(tmp_path, f"export GITHUB_TOKEN={SECRET}")
    for options in (["--to", "html", "--carry"], ["--to", "html"]):
        masked = clew("--home", home, "export", *options)
        assert masked.code == 0 and SECRET not in masked.out and "masked" in masked.err
        assert "Redacted" in words(next(elements(parse(masked.out), tag="footer")))
    assert clew("--home", home, "export", "--site", tmp_path / "site").code == 0
    assert not [path for path in (tmp_path / "site").iterdir() if SECRET in path.read_text(encoding="utf-8")]
    assert SECRET in clew("--home", home, "export", "--to", "html", "--redact", "none").out


@pytest.mark.slow
def test_H09_long_lines_are_shown_quickly_on_a_terminal(tmp_path: Path) -> None:
    import time

    from clew.render.terminal import show

    for text in ("x" * 1_000_000, "語" * 300_000, "e\u0301" * 300_000, "\u200b" * 100_000, "a\u0300" * 9_000):
        block = {"type": "tool_result", "tool_id": "x", "output": text}
        said = {"type": "text", "text": text}
        for color in (True, False):
            began = time.process_time()
            shown = "".join(
                show({"id": "s"}, iter([{"index": 1, "role": "assistant", "content": [said, block]}]), 80, color)
            )
            assert time.process_time() - began < 2 and "\x1b]" not in shown


def test_a_site_is_the_same_on_however_many_cores_it_is_written(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cores in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert clew("--home", demo, "export", "--site", tmp_path / str(cores)).code == 0
    one, three = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("1", "3"))
    assert one == three and "index.html" in one


def _home(folder: Path, text: str) -> Path:
    """A home with one session that holds the text."""
    project = folder / "home" / ".claude" / "projects" / "-p"
    project.mkdir(parents=True)
    identity = "0a6c1f5e-0000-4000-8000-00000000000a"
    line = claude_line("user", "u1", None, sessionId=identity)
    line["message"]["content"] = text
    (project / f"{identity}.jsonl").write_text(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )
    return folder / "home"
