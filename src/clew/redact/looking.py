"""Looking at the texts of values, all as one; what was found in one is known in all from then on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from clew.model.json import JSON
from clew.redact import paying
from clew.redact.finding import Finding, Spans, kinds_of
from clew.redact.flat import to_bytes
from clew.redact.halves import Halves
from clew.redact.jsontext import splice
from clew.redact.known import Known
from clew.redact.leaves import Collected, Leaves
from clew.redact.rebuilding import add, dealt, whole, within
from clew.redact.rules import CROWDED, Rules, standard
from clew.redact.scan import apply
from clew.redact.searching import Fuel
from clew.redact.sieve import Sieve

_MOST_CLEAN, _MOST_MARKERS = 20_000, 10_000
_LONG, _MOST_LONG = 1 << 14, 1000
_LONGEST_CLEAN = 256
# What a look costs in a session, in bytes of text, and how many may be saved up: most records are never looked at.
_LOOK, _SAVED = 3072, 700
_REMEMBERED = frozenset({"secret", "pii"})
SHORTEST_KNOWN = 6
"""Shorter values are masked where they are found, and nowhere else."""
KNOWN = "known_value"
"""The rule that finds what another found before."""
SURE = 0.8
"""How sure a finding must be that lies across two texts: the seam may have made it."""
Numbers = dict[tuple[str, str | None], int]


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
        self._leaves = Leaves()
        self._long: dict[bytes, list[Finding]] = {}
        self._values: dict[str, str] = {}
        self._known: Known | None = None
        self._halves = Halves()
        self._fuel = Fuel(_LOOK, _SAVED)
        self._records = Fuel(paying.PRICE, paying.SAVED)
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
        return self._rules.sieve(kinds_of(self.setting.profile))

    @cached_property
    def _rules(self) -> Rules:
        return self.setting.rules or standard()

    def _applied(self, spans: Spans, texts: Collected) -> dict[str, str]:
        changes = {text: apply(text, found, self._mark) for text, found in spans.items()}
        for text in reversed(texts.nested):
            if (spliced := splice(text, changes)) != text:
                changes[text] = spliced
        return changes

    def _look(self, values: Sequence[Collected]) -> list[Spans]:
        """The findings in each text, for each of some values. All texts are searched as one."""
        numbers: Numbers = {}
        for leaves in values:
            _number(numbers, leaves)
        found = self._scan(numbers) if numbers else {}
        looked = [self._spans(leaves, numbers, found, self._leaves.clean) for leaves in values]
        if len(self._leaves.clean) > _MOST_CLEAN:
            self._leaves.clean.clear()
        return looked

    def _pays(self, raw: bytes, path: str | None, *, is_read: bool = False) -> bool:
        """Pay for reading JSON text, or going through what was read, if there is enough left."""
        if self._sieve is None or path is not None:
            return True
        cost, ahead = paying.for_reading(raw, is_read)
        if not self._records.covers(cost + ahead):
            return False
        self._records.spend(cost)
        return True

    def _collected(self, value: JSON, path: str | None) -> Collected | None:
        """The texts of a value, which are paid for by their number; None where there are too many for that."""
        if self._sieve is None or path is not None:
            return self._leaves.collect(value, path)
        records = self._records
        texts = self._leaves.collect_some(value, path, max(paying.FEWEST_LEAVES, int(records.looks * paying.LEAVES)))
        met = self._leaves
        records.spend(records.looks if texts is None else paying.for_leaves(met.cost, met.nested))
        return texts

    def _paid_look(self, values: list[Collected]) -> list[Spans | None]:
        """What is found in some values; None for one of which that cannot be paid for."""
        before, fuel = self._worked(), self._fuel
        fuel.most_crowds = fuel.crowds + paying.most_crowds(values)
        looked = self._look(values)
        self._pay_for_looks(before)
        if fuel.is_given_up:
            return [None] * len(values)
        return [spans if self._pays_found(spans) else None for spans in looked]

    def _pays_found(self, spans: Spans) -> bool:
        """Pay for what was found in a record, if there is enough left for so much, and for the values that are new."""
        cost, count = paying.for_found(spans), sum(map(len, spans.values()))
        if count > paying.FEW and self._sieve is not None:
            new = {text[each.start : each.end] for text, found in spans.items() for each in found} - self._values.keys()
            if not self._records.covers(cost + paying.for_values(new)):
                return False
        self._records.spend(cost)
        return True

    def _worked(self) -> tuple[int, int]:
        """What all looks and escapes were worth so far, and how many crowds were hidden without a look."""
        fuel = self._fuel
        numbers, sifting = (own.spent if own else 0 for own in (fuel.numbers, fuel.sifting))
        return paying.for_looks(fuel.spent, numbers, sifting, fuel.stripped), fuel.crowds

    def _pay_for_looks(self, before: tuple[int, int]) -> None:
        """Where signs crowd, as they do in what is built to be slow, the next records are better hidden unread."""
        worth, crowds = self._worked()
        self._records.spend(worth - before[0])
        self._records.forfeit(paying.CROWDS * (crowds - before[1]))
        self._records.owe(paying.CROWD * (crowds - before[1]))

    def _spans(
        self,
        leaves: Collected,
        numbers: Mapping[tuple[str, str | None], int],
        found: Mapping[int, list[Finding]],
        clean: set[str],
    ) -> Spans:
        """What was found in the texts of one value; short ones that hold nothing are noted as clean."""
        spans: Spans = {}
        for text, before, behind, path in leaves.found:
            number = numbers[before + text + behind, path]
            if number in found:
                add(spans, text, within(found[number], len(before), len(text)))
            elif path is None and not before and len(text) <= _LONGEST_CLEAN:
                clean.add(text)
        for joint in leaves.joints:
            if own := found.get(numbers[whole(joint), None]):
                for text, parts in dealt(joint, own, SURE).items():
                    add(spans, text, parts)
        for text in leaves.cut if self._values else ():
            if half := self._halves.find(text):
                add(spans, text, [Finding(*half[:2], self._values[half[2]], "secret", 1.0)])
                clean.discard(text)
        return spans

    def _again(self, seen: Sequence[Seen]) -> list[Spans]:
        """The same for records that were looked at before, with what is known since."""
        numbers: Numbers = {}
        for each in seen:
            _number(numbers, each.texts)
            for text in each.texts.again:
                numbers.setdefault((text, None), len(numbers))
        found = self._known_in(numbers)
        looked = []
        for each in seen:
            spans = self._spans(each.texts, numbers, found, clean=set())
            for text in each.texts.again:
                if own := found.get(numbers[text, None]):
                    add(spans, text, own)
            for text, own in each.spans.items():
                add(spans, text, own)
            looked.append(spans)
        return looked

    def _known_in(self, numbers: Numbers) -> dict[int, list[Finding]]:
        """The known values in some texts, by their number. In long ones, what is hidden anyway is not searched."""
        if self._known is None:
            return {}
        texts = ["" if len(text) >= _LONG else text for text, _ in numbers]
        found = self._rules.known_in(texts, self._known)
        long = {number: self._in_long(*key) for key, number in numbers.items() if len(key[0]) >= _LONG}
        return found | {number: findings for number, findings in long.items() if findings}

    def _scan(self, numbers: Mapping[tuple[str, str | None], int]) -> dict[int, list[Finding]]:
        """The findings of texts by their number; each may come from a credential file."""
        long = {number: self._in_long(*key) for key, number in numbers.items() if len(key[0]) >= _LONG}
        paths = {number: path for (_, path), number in numbers.items() if path is not None and number not in long}
        texts = ["" if number in long else text for (text, _), number in numbers.items()]
        kinds = kinds_of(self.setting.profile)
        found = self._rules.findings(texts, kinds, known=self._known, paths=paths, fuel=self._fuel)
        return found | {number: findings for number, findings in long.items() if findings}

    def _in_long(self, text: str, path: str | None) -> list[Finding]:
        """The findings of a long text, which is searched for signs only once, and then for what is known since."""
        key = blake2b(to_bytes(text), digest_size=20, key=(path or "").encode("utf-8", "replace")[:64]).digest()
        found = self._long.get(key)
        if found is None:
            paths = {0: path} if path is not None else None
            kinds = kinds_of(self.setting.profile)
            found = self._rules.findings([text], kinds, paths=paths, fuel=self._fuel).get(0, [])
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
                if (
                    finding.kind in _REMEMBERED
                    and finding.rule not in (KNOWN, CROWDED)
                    and len(value) >= SHORTEST_KNOWN
                ):
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
        self._leaves.clean.clear()


def _number(numbers: Numbers, leaves: Collected) -> None:
    """Number the texts that are to be searched."""
    for text, before, behind, path in leaves.found:
        numbers.setdefault((before + text + behind, path), len(numbers))
    for joint in leaves.joints:
        numbers.setdefault((whole(joint), None), len(numbers))
