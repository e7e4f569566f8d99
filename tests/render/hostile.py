"""Strings that would do harm in a page, and sessions that hold them everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<!-- never closed",
    "--><script>alert(1)</script>",
    "]]></style></script></title></textarea><script>alert(1)</script>",
    "</article></main></body></html><script>alert(1)</script>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "<form action=javascript:alert(1)><button>go</button><input name=attributes>",
    "<a id=talk name=body href=x>clobber</a>",
    '"\' onmouseover=alert(1) x="',
    "<details ontoggle=alert(1) open>",
    "<template><script>alert(1)</script></template>",
    "<x onclick=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62;",
    "\u2028\u2029\x00\x1b[31mred\x1b[0m\x1b]0;title\x07\u202eevil",
)
LINKS = (
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](java\tscript:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](&#x6A;avascript&colon;alert(1))",
    "[a](vbscript:msgbox(1))",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](file:///etc/passwd)",
    "[a](//evil.example/x)",
    "[a](/etc/passwd)",
    "<javascript:alert(1)>",
    "[a]: javascript:alert(1)\n\n[a]",
    '[a](https://good.example/?"onmouseover=alert(1))',
    "[a](https://good.example '\" onmouseover=\"alert(1)')",
    "![a](https://evil.example/beacon.png)",
    "![a](javascript:alert(1))",
    "[![a](https://evil.example/b.png)](javascript:alert(1))",
)
FENCES = (
    '```" onclick=alert(1)\ncode\n```',
    "```<script>\ncode </code></pre><script>alert(1)</script>\n```",
    "| a | <script> |\n|---|---|\n| <img src=x onerror=1> | b |",
    "# <script>alert(1)</script>",
    "> <iframe src=https://evil.example>",
)
HOSTILE = (*MARKUP, *LINKS, *FENCES)

_STRUCTURE = frozenset({"type", "role", "encoding"})


def poisoned(value: Any, poison: Iterator[str], key: str = "") -> Any:
    """The value with a hostile string in the place of every string but those that say what something is."""
    if isinstance(value, str):
        return value if key in _STRUCTURE else next(poison)
    if isinstance(value, list):
        return [poisoned(item, poison, key) for item in value]
    if isinstance(value, dict):
        return {name: poisoned(item, poison, name) for name, item in value.items()}
    return value
