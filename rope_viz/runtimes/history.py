"""What the releases of each runtime compute from one config, oldest first, as far as that is known."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.runtimes import Emulation, emulate_case, read_case, resolve_release
from rope_viz.runtimes.asked_engines import AskedEngine, find_all_asked
from rope_viz.runtimes.compare import Comparison, compare_with
from rope_viz.runtimes.provenance import How
from rope_viz.runtimes.releases import MINORS, RELEASES, find_minor, format_version
from rope_viz.runtimes.texts import TEXTS
from rope_viz.texts.texts import join_items, join_list

UNKNOWN: How = "not known"
RATIO: Callable[[float], str] = "×{:.4g}".format


@dataclass(frozen=True)
class Span:
    """Known releases of a runtime in a row with one verdict that is known in one way, oldest first."""

    comparisons: tuple[Comparison, ...]
    words: str
    how: How

    @property
    def releases(self) -> list[str]:
        return [format_version(one.emulation.version) for one in self.comparisons]

    @property
    def brief(self) -> str:
        """The verdict without its details: "×47.8"."""
        return self.last.brief if self.how != UNKNOWN else self.words

    @property
    def last(self) -> Comparison:
        return self.comparisons[-1]


@dataclass(frozen=True)
class AskedSpan:
    """Releases in a row, oldest first, that gave one answer when they were asked about a config as whole engines."""

    config: str
    releases: tuple[str, ...]
    verdict: str


@dataclass(frozen=True)
class History:
    """What the known releases of one runtime compute from a config, oldest first, compared with `base`."""

    runtime: str
    base: Emulation
    comparisons: tuple[Comparison, ...]
    ratio: Callable[[float], str] = RATIO
    asked: tuple[AskedEngine, ...] = ()

    @property
    def releases(self) -> list[str]:
        """The known releases, oldest first."""
        return [format_version(one.emulation.version) for one in self.comparisons]

    @property
    def spans(self) -> list[Span]:
        """The releases in a row whose verdict and its evidence are the same."""
        found: list[Span] = []
        for one in self.comparisons:
            words = self.describe(one)
            if found and (found[-1].words, found[-1].how) == (words, one.how):
                found[-1] = Span((*found[-1].comparisons, one), words, one.how)
            else:
                found.append(Span((one,), words, one.how))
        return found

    @property
    def asked_spans(self) -> list[AskedSpan]:
        """What whole engines answered about configs of this architecture with this scaling, config by config."""
        found: list[AskedSpan] = []
        for answer in sorted(self.asked, key=lambda answer: (answer.config, read_numbers(answer.release))):
            if found and (found[-1].config, found[-1].verdict) == (answer.config, answer.verdict):
                found[-1] = AskedSpan(answer.config, (*found[-1].releases, answer.release), answer.verdict)
            else:
                found.append(AskedSpan(answer.config, (answer.release,), answer.verdict))
        return found

    @property
    def gaps(self) -> list[tuple[str, str]]:
        """The neighbouring known releases between which others came out that are not known."""
        return [pair for pair in itertools.pairwise(self.releases) if not is_next(self.runtime, *pair)]

    @property
    def changes(self) -> list[tuple[Comparison, Comparison]]:
        """The neighbouring known releases that compute different things."""
        known = [one for one in self.comparisons if one.how != UNKNOWN]
        return [
            (older, newer) for older, newer in itertools.pairwise(known) if self.describe(older) != self.describe(newer)
        ]

    def describe(self, one: Comparison) -> str:
        """Return the verdict on one release, without how it is known."""
        return TEXTS("verdict.not_known") if one.how == UNKNOWN else one.words(self.ratio)

    def sentence(self, name: str) -> str:
        """Return since when there is a difference, as text: "vLLM: refuses in 0.6.6, agrees since 0.8.5"."""
        found: list[tuple[str, list[str]]] = []
        for span in self.spans:
            if found and found[-1][0] == span.words:
                found[-1][1].extend(span.releases)
            else:
                found.append((span.words, span.releases))
        words, releases = found[-1]
        if len(found) == 1:
            return TEXTS("history.one", name=name, words=words, releases=format_span(releases))
        parts = [TEXTS("history.part", words=words, releases=format_span(releases)) for words, releases in found[:-1]]
        return TEXTS("history.since", name=name, parts=join_items(parts), words=words, release=releases[0])


def trace_releases(
    config: Source,
    *,
    length: int | None = None,
    layer_type: str | None = None,
    ratio: Callable[[float], str] = RATIO,
) -> list[History]:
    """Return what every known release of every runtime computes, compared with the newest transformers.

    Raises `ValueError` as `emulate` does.
    """
    case = read_case(config, length=length, layer_type=layer_type)
    base = emulate_case(*resolve_release("transformers"), case)
    return [
        History(
            name,
            base,
            tuple(
                compare_with(base, emulate_case(name, release, case))
                for release in sorted(runtime.list_for(case.model), key=read_numbers)
            ),
            ratio,
            find_all_asked(name, case.fields, case.kind),
        )
        for name, runtime in RELEASES.items()
        if name != "paper"
    ]


def histories(
    config: Source,
    *,
    length: int | None = None,
    layer_type: str | None = None,
    ratio: Callable[[float], str] = RATIO,
) -> list[History]:
    """Return the runtimes whose releases compute different things from a config, as far as that is known.

    Runtimes with several releases of today are left out: each of those is a row of the comparison.
    """
    found = trace_releases(config, length=length, layer_type=layer_type, ratio=ratio)
    return [history for history in found if history.changes and len(RELEASES[history.runtime].today) == 1]


@dataclass(frozen=True)
class Changes:
    """What changed for one layer type of a config since an older minor release of transformers 5.

    `reasons` are the sentences of the rules that only one of the two has, or why the older one refuses.
    """

    layer: str
    history: History
    reasons: tuple[str, ...]


def find_changes(
    config: Source,
    release: str,
    *,
    length: int | None = None,
    layer_type: str | None = None,
    ratio: Callable[[float], str] = RATIO,
) -> list[Changes]:
    """Return what changed from an older minor release of transformers 5 to today's, by layer type; [] if nothing did.

    Raises `ValueError` as `emulate` does.
    """
    name, release = resolve_release("transformers", release)
    newest = RELEASES[name].today[0]
    later = [version for version in reversed(MINORS) if find_minor(version) >= find_minor(release)]
    model = ModelConfig.read(config)
    found = []
    for layer in (layer_type,) if layer_type is not None else tuple(model.specs) or ("",):
        case = read_case(model, length=length, layer_type=layer or None)
        base = emulate_case(name, newest, case)
        compared = tuple(compare_with(base, emulate_case(name, version, case)) for version in (*later, newest))
        history = History(name, base, compared, ratio)
        if compared[-1].how != UNKNOWN and {span.words for span in history.spans} == {history.describe(compared[-1])}:
            continue
        asked = emulate_case(name, release, case)
        found.append(Changes(layer, history, explain_change(asked, base)))
    return found


def explain_change(asked: Emulation, today: Emulation) -> tuple[str, ...]:
    """Return why a release computes something else than today's, as sentences."""
    if asked.known.how == "not known":
        return (asked.known.source,)
    if asked.reason or today.reason:
        return tuple(filter(None, (asked.reason,)))
    ours, theirs = ({rule.key: rule.text for rule in one.rules} for one in (asked, today))
    added = [text for key, text in ours.items() if key not in theirs]
    return (*added, *(TEXTS("history.not_done", rule=text) for key, text in theirs.items() if key not in ours))


def format_span(releases: Sequence[str]) -> str:
    """Return releases as text: up to three by name, more as "0.20.0 to 0.29.0"."""
    return join_list(releases) if len(releases) < 4 else TEXTS("history.span", first=releases[0], last=releases[-1])


def read_numbers(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, by which releases are ordered: (0, 10, 2) of "0.10.2"."""
    return tuple(int(number) for number in re.findall(r"\d+", format_version(release)))


def is_next(runtime: str, older: str, newer: str) -> bool:
    """Return whether the numbers leave no room for a release between these two, repairs left aside."""
    before, after = read_numbers(older), read_numbers(newer)
    if min(len(before), len(after)) < 3:
        return False
    if before[:2] == after[:2]:
        return RELEASES[runtime].has_repairs or after[2] - before[2] <= 1
    return RELEASES[runtime].has_repairs and after[:2] == (before[0], before[1] + 1)


def format_releases(runtime: str, releases: Sequence[str]) -> str:
    """Return releases as text: those that follow each other without a gap as "5.3.0 to 5.24.0"."""
    runs = list_runs(runtime, releases)
    return join_items([run[0] if len(run) == 1 else TEXTS("history.span", first=run[0], last=run[-1]) for run in runs])


def list_runs(runtime: str, releases: Sequence[str]) -> list[list[str]]:
    """Return releases in groups that follow each other without a gap."""
    runs: list[list[str]] = []
    for release in releases:
        if runs and is_next(runtime, runs[-1][-1], release):
            runs[-1].append(release)
        else:
            runs.append([release])
    return runs
