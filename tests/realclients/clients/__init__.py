"""The real clients, one module each. Adding a client means adding a module here, and nothing else.

A module defines `CLIENT` (see `Client` in `tests.realclients.client`: packages, program, arguments, settings, where the
sessions are) and `STORIES`: the sessions that it records, as prompts and turns of a scripted model. The first story has
the name of the client. `FILE_CHANGES` is optional: sessions for the test of `clew files` against the real files.
From these follow: installation in a folder of its own, recording, resuming, clew on what was recorded, and, as soon as
clew has the agent, conversion from and to Claude Code and Codex. The pairs are listed in `test_resume_matrix.py`.
A client that cannot be installed makes its tests skip with the reason.
Try a new module with `python -m tests.realclients.install NAME` and `pytest tests/realclients/test_clients.py -k NAME`.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from tests.realclients.client import Client, FileChanges, Story

_MODULES = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
CLIENTS: dict[str, Client] = {module.CLIENT.name: module.CLIENT for module in _MODULES}
STORIES: dict[str, Story] = {story.name: story for module in _MODULES for story in module.STORIES}
FILE_CHANGES: dict[str, FileChanges] = {
    changes.name: changes for module in _MODULES for changes in getattr(module, "FILE_CHANGES", ())
}
