"""No file names a place on the machine it was written on."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Put together, so that this file does not name what it looks for.
# Only the start of a path counts: `/home/ada/work/` is fine.
FOLDERS = "|".join(["wo" + "rk", "ro" + "ot"])
FORBIDDEN = re.compile(rf"(?<![\w.~*}}>-])/(?:{FOLDERS})/|\b{'py' + 'env'}\b".encode())


def checked_files() -> list[Path]:
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.slow
def test_no_file_names_this_machine() -> None:
    found = []
    for path in checked_files():
        content = path.read_bytes()
        if b"\0" in content:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]!r}"
            for number, line in enumerate(content.splitlines(), 1)
            if FORBIDDEN.search(line)
        ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("see /" + "work/x", True),
        ('"/' + "root/.cache", True),
        ("py" + "env shims", True),
        ("/home/ada/" + "work/x", False),
        ("https://example.org/" + "work/x", False),
    ],
)
def test_only_places_of_this_machine_count(text: str, wrong: bool) -> None:
    assert bool(FORBIDDEN.search(text.encode())) is wrong
