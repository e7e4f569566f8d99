"""Looking at the texts of values, all as one; what was found in one is known in all from then on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import chain, islice
from typing import NamedTuple

from clew.redact.findings import Finding, Spans, kinds_of
from clew.redact.flat import to_bytes
from clew.redact.halves import Halves
from clew.redact.json_text import literals, splice
from clew.redact.json_walk import Collected, Joint, Leaves
from clew.redact.known_values import SHORTEST, Known
from clew.redact.matcher import TOO_MANY
from clew.redact.packed import PACKED
from clew.redact.prefilter import Sieve, touched_by
from clew.redact.rebuilding import add, dealt, near, whole, within
from clew.redact.scan import apply
from clew.redact.scanner import Rules, standard
from clew.redact.skip_rules import is_image

_MOST_MARKERS = 10_000
_LONG, _MOST_LONG = 1 << 14, 1000
# No name, number or address is longer.
_SHORT = 512
_REMEMBERED = frozenset({"secret", "pii"})
KNOWN = "known_value"
"""The rule that finds what another found before."""
_NOT_REMEMBERED = frozenset({KNOWN, TOO_MANY, PACKED})
SURE = 0.8
"""How sure a finding must be that lies across two texts: the seam may have made it."""
Text = tuple[str, str | None]
"""A text that is searched, and the credential file that it comes from."""


class Setting(NamedTuple):
    """What is masked, and how."""

    profile: str
    mark: Callable[[str, str], str]
    """From a value and the rule that found it to what stands in its place."""
    rules: Rules | None = None


class Seen(NamedTuple):
    """A record that was read: its texts, and what was found in them by rules."""

    texts: Collected
    spans: Spans
    is_text: bool
    """It is no JSON, but a text."""


class Looker:
    """Finds what its setting forbids in the texts of one session; counts the values that were masked, by rule."""

    def __init__(self, setting: Setting, masked: Counter[str] | None = None) -> None:
        self.setting = setting
        self.masked: Counter[str] = Counter() if masked is None else masked
        self._leaves = Leaves(setting.rules is not None and setting.rules.has_own)
        self._long: dict[tuple[bytes, frozenset[str]], list[Finding]] = {}
        self._values: dict[str, str] = {}
        self._known: Known | None = None
        self._halves = Halves()
        self._settled = 0
        self._marked: set[str] = set()
        self._markers: dict[tuple[str, str], str] = {}

    @property
    def values(self) -> Mapping[str, str]:
        """Every value that was found, with the rule that found it first."""
        return self._values

    @property
    def version(self) -> str:
        """That of the rules."""
        return self._rules.version

    @cached_property
    def _sieve(self) -> Sieve | None:
        return self._rules.sieve(self._kinds)

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return kinds_of(self.setting.profile)

    @cached_property
    def _rules(self) -> Rules:
        return self.setting.rules or standard()

    def _applied(self, spans: Spans, texts: Collected) -> dict[str, str]:
        changes = {text: apply(text, found, self._mark) for text, found in spans.items()}
        for text in reversed(texts.nested):
            if (spliced := splice(text, changes)) != text:
                changes[text] = spliced
        return changes

    def _with_unsearched(self, spans: Spans, texts: Collected, every: Iterable[str]) -> Spans:
        """Findings with the known values in those of all texts that rules do not look at: short keys, ids, numbers."""
        if self._known is None:
            return spans
        met = {text for text, _, _, _ in texts.found}.union(spans, texts.nested)
        all_texts = {*every, *chain.from_iterable(map(literals, texts.nested))}
        rest = [text for text in all_texts if text not in met and not is_image(text)]
        found = self._rules.known_in(rest, self._known)
        return spans | {rest[number]: own for number, own in found.items()} if found else spans

    def _holds_known(self, raw: bytes) -> bool:
        """True where a known value stands in the JSON text of a record."""
        return self._known is not None and self._known.find(raw, 0, len(raw))[0] >= 0

    def _look(self, values: Sequence[Collected]) -> list[Spans]:
        """The findings in each text, for each of some values. All texts are searched as one."""
        found = self._scan(dict.fromkeys(text for leaves in values for text in _texts(leaves)), self._kinds)
        looked = [self._spans(leaves, found) for leaves in values]
        for leaves, spans in zip(values, looked, strict=True):
            if leaves.own:
                own = list(dict.fromkeys(leaves.own))
                for number, findings in self._rules.own_findings(own, self._kinds).items():
                    add(spans, own[number], findings)
        return self._across(values, looked)

    def _across(self, values: Sequence[Collected], looked: list[Spans]) -> list[Spans]:
        """The same with what lies across two texts, for which the edges of both are searched once more."""
        pairs = [(leaves, spans) for leaves, spans in zip(values, looked, strict=True) if leaves.seams]
        if not pairs:
            return looked
        for kinds, chosen in self._ways([leaves.seams for leaves, _ in pairs]):
            joined = list(map(_joined, chosen))
            found = self._scan(dict.fromkeys((text, None) for own in joined for text, _ in own), kinds)
            for (_, spans), own in zip(pairs, joined, strict=True):
                _deal(spans, own, found)
        return looked

    def _ways(self, seams: list[list[Joint]]) -> Iterator[tuple[frozenset[str], list[list[Joint]]]]:
        """What is looked for in which edges: keys are long, all else is short, but for what a person's own rules find.

        Of long edges, only the ends are searched for that.
        """
        others = self._kinds - {"secret"}
        if self._sieve is None or not others or not any(map(_is_long, chain.from_iterable(seams))):
            yield self._kinds, seams
            return
        long = [[joint for joint in own if _is_long(joint)] for own in seams]
        yield self._kinds, [[joint for joint in own if not _is_long(joint)] for own in seams]
        yield self._kinds - others, long
        yield others, [[near(joint, _SHORT) for joint in own] for own in long]

    def _spans(self, leaves: Collected, found: Mapping[Text, list[Finding]]) -> Spans:
        """What was found in the texts of one value."""
        spans: Spans = {}
        for text, before, behind, path in leaves.found:
            own = found.get((before + text + behind, path))
            if own is not None:
                add(spans, text, within(own, len(before), len(text)))
        _deal(spans, _joined(leaves.joints), found)
        for text in leaves.packed:
            add(spans, text, [Finding(0, len(text), PACKED, "secret", 1.0)])
        for text in leaves.cut if self._values else ():
            if half := self._halves.find(text):
                add(spans, text, [Finding(*half[:2], self._values[half[2]], "secret", 1.0)])
        return spans

    def _again(self, seen: Sequence[Seen]) -> list[Spans]:
        """The same for records that were looked at before, with what is known since."""
        reach = self._known.longest if self._known else 0
        seams = [_joined(near(joint, reach) for joint in each.texts.seams) for each in seen]
        texts = dict.fromkeys(text for each in seen for text in _texts(each.texts))
        found = self._known_in(texts) | self._known_in_edges(text for own in seams for text, _ in own)
        looked = []
        for each, joints in zip(seen, seams, strict=True):
            spans = self._spans(each.texts, found)
            _deal(spans, joints, found)
            for text, own in each.spans.items():
                add(spans, text, own)
            looked.append(spans)
        return looked

    def _since(self, text: bytes) -> bool:
        """True where something may be in a record that is known since it was learned from."""
        return self._sieve is None or self._sieve.holds_known(text, self._known, cut=bool(self._values))

    def _with_known(self, seen: Mapping[bytes, Seen]) -> set[bytes]:
        """Those of some records that may hold a known value: in their JSON text, or across two of their texts."""
        if self._known is None:
            return set()
        text = b"".join(seen)
        if len(seen) == 1:  # which may have line ends within
            touched = set(seen) if self._known.find(text, 0, len(text))[0] >= 0 else set()
        else:
            touched = {text[start:end] for start, end in touched_by([self._known.find], text)}
        return touched | self._known_across({raw: each for raw, each in seen.items() if raw not in touched})

    def _known_across(self, seen: Mapping[bytes, Seen]) -> set[bytes]:
        """Those of some records of which two texts may hold a known value together, each a part of it."""
        reach = self._known.longest if self._known else 0
        pairs = [(whole(near(joint, reach)), raw) for raw, each in seen.items() for joint in each.texts.seams]
        found = self._known_in_edges(text for text, _ in pairs)
        return {raw for text, raw in pairs if (text, None) in found}

    def _known_in(self, texts: Collection[Text]) -> dict[Text, list[Finding]]:
        """The known values in those of some texts that hold any. In long ones, what is hidden is not searched."""
        if self._known is None:
            return {}
        keys = list(texts)
        long = {key: self._in_long(*key, self._kinds) for key in keys if len(key[0]) >= _LONG}
        found = self._rules.known_in(["" if key in long else key[0] for key in keys], self._known)
        return _by_text(keys, found, long)

    def _known_in_edges(self, texts: Iterable[str]) -> dict[Text, list[Finding]]:
        """The same for the edges of texts, be they long: what is hidden in them was found before."""
        keys: list[Text] = [(text, None) for text in dict.fromkeys(texts)]
        if self._known is None or not keys:
            return {}
        return _by_text(keys, self._rules.known_in([text for text, _ in keys], self._known), {})

    def _scan(self, texts: Collection[Text], kinds: frozenset[str]) -> dict[Text, list[Finding]]:
        """The findings of those of some texts that hold any."""
        keys = list(texts)
        long = {key: self._in_long(*key, kinds) for key in keys if len(key[0]) >= _LONG}
        paths = {number: key[1] for number, key in enumerate(keys) if key[1] is not None and key not in long}
        searched = ["" if key in long else key[0] for key in keys]
        found = self._rules.findings(searched, kinds, known=self._known, paths=paths)
        return _by_text(keys, found, long)

    def _in_long(self, text: str, path: str | None, kinds: frozenset[str]) -> list[Finding]:
        """The findings of a long text, which is searched for signs only once, and then for what is known since."""
        own = blake2b(to_bytes(text), digest_size=20, key=(path or "").encode("utf-8", "replace")[:64])
        key = own.digest(), kinds
        found = self._long.get(key)
        if found is None:
            paths = {0: path} if path is not None else None
            found = self._rules.findings([text], kinds, paths=paths).get(0, [])
            if len(self._long) < _MOST_LONG:
                self._long[key] = found
        return self._rules.with_known(text, found, self._known) if self._known else found

    def marker(self, value: str, rule: str) -> str:
        """The marker of a value; what was found before keeps the name it got then."""
        key = value, self._values.get(value, rule)
        marker = self._markers.get(key)
        if marker is None:
            marker = self.setting.mark(*key)
            if len(self._markers) < _MOST_MARKERS:
                self._markers[key] = marker
        return marker

    def _mark(self, value: str, rule: str) -> str:
        if value not in self._marked:
            self._marked.add(value)
            self.masked[self._values.get(value, rule)] += 1
        return self.marker(value, rule)

    def _remember(self, spans: Spans) -> None:
        for text, found in spans.items():
            for finding in found:
                value = text[finding.start : finding.end]
                if finding.kind in _REMEMBERED and finding.rule not in _NOT_REMEMBERED and len(value) >= SHORTEST:
                    self._values.setdefault(value, finding.rule)

    def settle(self) -> None:
        """From here on everything that was learned is known."""
        new = list(islice(self._values, self._settled, None))
        if not new:
            return
        self._settled = len(self._values)
        if self._known is None:
            self._known = Known()
        self._known.add(new)
        self._halves.add(new)


def _texts(leaves: Collected) -> Iterator[Text]:
    """The texts of a value that are to be searched, but for its seams."""
    for text, before, behind, path in leaves.found:
        yield before + text + behind, path
    for joint in leaves.joints:
        yield whole(joint), joint.path


def _by_text(
    keys: list[Text], found: Mapping[int, list[Finding]], long: Mapping[Text, list[Finding]]
) -> dict[Text, list[Finding]]:
    """Findings by number, and those of long texts, as findings by text."""
    return {keys[number]: own for number, own in found.items()} | {key: own for key, own in long.items() if own}


def _is_long(joint: Joint) -> bool:
    """True where most of some edges lies far from where they meet."""
    (_, start, stop), *_, (_, begin, end) = joint.windows
    return stop - start + end - begin > 4 * _SHORT


def _joined(joints: Iterable[Joint]) -> list[tuple[str, Joint]]:
    """Joined texts, each with the text that they make."""
    return [(whole(joint), joint) for joint in joints]


def _deal(spans: Spans, joints: Iterable[tuple[str, Joint]], found: Mapping[Text, list[Finding]]) -> None:
    """Add what was found in joined texts to the spans of each."""
    for text, joint in joints:
        if own := found.get((text, joint.path)):
            for part, findings in dealt(joint, own, SURE).items():
                add(spans, part, findings)
