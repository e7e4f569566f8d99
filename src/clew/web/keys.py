"""Keyboard shortcuts as the help dialog lists them; `keyboard.js` and `palette.js` perform them."""

from __future__ import annotations

KEYS = (
    ("j k", "next, previous message or row"),
    ("J K", "next, previous prompt"),
    ("G Home", "end, start of a session"),
    ("[ ]", "newer, older session; with the list, the one above or below"),
    ("b", "show or hide the list of sessions"),
    ("/", "search"),
    ("Ctrl-K", "go to anything, or run an action"),
    ("n N", "next, previous hit in a session"),
    ("g", "graph of the session, and back"),
    ("f", "follow a running session"),
    ("s", "star the message or session"),
    ("c", "copy a link to the message or session"),
    ("1 2 3 4", "detail level"),
    ("d", "diff layout"),
    ("t", "colours"),
    ("?", "this help"),
)
