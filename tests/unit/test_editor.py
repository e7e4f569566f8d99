"""The addresses that open a file in an editor."""

from __future__ import annotations

import pytest

from clew.web.editor import EDITORS, editor_url


@pytest.mark.parametrize(
    ("path", "editor", "address"),
    [
        ("/home/ada/a b#?&%/tide.py", "vscode", "vscode://file/home/ada/a%20b%23%3F%26%25/tide.py"),
        (r"C:\ada\tide.py", "zed", "zed://file/C%3A/ada/tide.py"),
        ("/a&line=9", "idea", "idea://open?file=/a%26line%3D9"),
        ("/home/ada/tide.py", "txmt", "txmt://open?url=file:///home/ada/tide.py"),
    ],
)
def test_the_address_of_a_file(path: str, editor: str, address: str) -> None:
    assert editor_url(path, editor) == address


@pytest.mark.parametrize("editor", EDITORS)
@pytest.mark.parametrize(
    "path",
    [
        *("tide.py", "./tide.py", "", "~/x", "//host/share/x", "\\\\host\\share", "/home/../etc/passwd", r"C:\..\x"),
        *("javascript:alert(1)", "file:///etc/passwd", "/a\nb", "/a\0b", "/a\u202eb", "/\ud800", "/" + "a" * 9999),
    ],
)
def test_other_paths_have_no_address(editor: str, path: str) -> None:
    assert editor_url(path, editor) is None


@pytest.mark.parametrize("editor", ["none", "javascript", ""])
def test_other_schemes_have_no_address(editor: str) -> None:
    assert editor_url("/home/ada/tide.py", editor) is None
