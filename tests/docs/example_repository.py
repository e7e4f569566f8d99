"""The git repositories of the examples: their commits have the same hashes everywhere."""

from datetime import UTC, datetime
from pathlib import Path

from tests.commits.git_sessions import BEGIN, ClaudeSession, GitRepository

FOLDER = Path("code/tidepool")
_PREDICT = '''\
def height(constituents, hours, z0=0.0):
    """Metres above chart datum, `hours` after the epoch; z0 is the mean level."""
    total = z0
    return total
'''
_TEST = """\
from tidepool.predict import height

ST_MALO = [(3.79, 28.984, 174.0), (1.49, 30.0, 226.0)]


def test_low_water_stays_above_chart_datum():
    assert min(height(ST_MALO, hour, 6.78) for hour in range(720)) > 1.4
"""


def write_example_repository(folder: Path) -> None:
    """Write the project of the demo's sessions, with five commits."""
    made = GitRepository.create(folder)
    made.commit("Begin", _second(1, 9, 0, month=10), {"README.md": "Tide tables for small harbours\n"})
    made.git("branch", "release")
    files = {"tidepool/predict.py": _PREDICT, "tests/test_predict.py": _TEST}
    made.commit("Add the mean level", _second(20, 9, 40, month=10), files)
    trailer = "Entire-Session: d75994b4-e8eb-4bb4-be37-ca1f27aa9485"
    made.commit(f"Remove the jump at midnight\n\n{trailer}", _second(3, 22, 50), {"tidepool/plot.py": "hours = hour\n"})
    url = "Agent-Logs-Url: https://github.com/ada/tidepool/sessions/5f0c2a9e-1111-4222-8333-444455556666"
    made.commit(f"Pin the versions of tools\n\n{url}", _second(5, 8, 0), {"requirements.txt": "pytest==9.0\n"})
    co_author = "Co-Authored-By: Claude <noreply@anthropic.com>"
    made.commit(f"Say how to install it\n\n{co_author}", _second(6, 8, 0), {"INSTALL.md": "pip install tidepool\n"})


def write_linked_commits(folder: Path, home: Path) -> None:
    """Write a repository and a home with sessions, such that the links of its commits have every value of every key."""
    made = GitRepository.create(folder)
    folder = folder.resolve()
    one, two, three, four = (f"{digit * 8}-aaaa-4bbb-8ccc-000000000001" for digit in "1234")
    ClaudeSession(home, one, folder).prompt("Plan it", 0).save()
    subagent = ClaudeSession(home, one, folder, agent="a1b2c3").prompt("Commit it", 0)
    subagent.run("git commit -m 'By a call'", made.commit("By a call", 10), 10).save()
    content = "height = 'of the tide'\n"
    ClaudeSession(home, two, folder).prompt("Write it", 0).edit("tide.py", content, 20).save()
    made.commit("By content", 30, {"tide.py": content})
    ClaudeSession(home, three, folder).prompt("Write another", 0).edit("moon.py", content, 40).save()
    made.commit("By time", 50, {"moon.py": "height = 'of the moon'\n"})
    ClaudeSession(home, four, folder).prompt("", 0).save()
    made.commit(f"By a trailer\n\nEntire-Session: {four}\nAmp-Thread-ID: T-1", 60)
    made.set_times("unknown", "unknown")


def _second(day: int, hour: int, minute: int, month: int = 11) -> int:
    return int((datetime(2026, month, day, hour, minute, tzinfo=UTC) - BEGIN).total_seconds())
