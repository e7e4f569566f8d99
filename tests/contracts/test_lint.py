"""ruff has nothing to say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_ruff_is_clean() -> None:
    folders = [name for name in ("src", "tests", "benchmarks", "scripts") if (ROOT / name).is_dir()]
    command = [sys.executable, "-m", "ruff", "check", "--output-format=concise", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
