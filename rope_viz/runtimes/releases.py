"""The runtimes that are emulated, how their makers write their names, and their releases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rope_viz.embedding.spec import short_repr
from rope_viz.models.no_rope_types import letters_of
from rope_viz.runtimes.texts import TEXTS
from rope_viz.texts import Translated


@dataclass(frozen=True)
class Runtime:
    """One runtime: its name as its makers write it, today's releases and older ones, the newest first.

    `is_one_release` is True where no version is worth showing: a paper, and snapshots that are no release.
    `has_repairs` is True where the third number of a release counts repairs only.
    `of_one_type` has releases of which the code of one model type alone was run: {model type: releases}.
    """

    name: Translated = Translated()
    today: tuple[str, ...]  # type: ignore[misc]  # the descriptor above is no default
    older: tuple[str, ...] = ()
    is_one_release: bool = False
    has_repairs: bool = False
    of_one_type: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases that answer for all model types, today's first."""
        return (*self.today, *self.older)

    def list_for(self, model_type: str) -> tuple[str, ...]:
        """Return the releases that answer for a model type, today's first."""
        return (*self.today, *self.of_one_type.get(model_type, ()), *self.older)

    def find_only_type(self, release: str) -> str:
        """Return the one model type that a release answers for; "" where it answers for all."""
        return next((kind for kind, releases in self.of_one_type.items() if release in releases), "")


# All since the one that brought DeepSeek V4 (tests/goldens/deepseek_v4_releases.json).
VLLM_DEEPSEEK_V4 = (
    *("0.32.0", "0.31.0", "0.30.0", "0.29.0", "0.28.0", "0.27.1", "0.27.0", "0.26.0", "0.25.1", "0.25.0", "0.24.0"),
    *("0.23.0", "0.22.1", "0.22.0", "0.21.0", "0.20.2", "0.20.1", "0.20.0"),
)
SGLANG_DEEPSEEK_V4 = (
    *("0.5.22", "0.5.21", "0.5.20", "0.5.19", "0.5.18", "0.5.17", "0.5.16", "0.5.15.post1", "0.5.15", "0.5.14"),
    *("0.5.13.post1", "0.5.13", "0.5.12.post1", "0.5.12"),
)

MINORS = (
    *("5.23.0", "5.22.2", "5.21.1", "5.20.2", "5.19.0", "5.18.0", "5.17.0", "5.16.1", "5.15.1", "5.14.1", "5.13.1"),
    *("5.12.1", "5.11.0", "5.10.4", "5.9.0", "5.8.1", "5.7.0", "5.6.2", "5.5.4", "5.4.0", "5.3.0", "5.2.0", "5.1.0"),
    "5.0.0",
)
"""The older minor releases of transformers 5, the newest first: of each the patch release that was run."""

RELEASES: dict[str, Runtime] = {
    "transformers": Runtime("transformers", ("5.24.0", "4.57.6", "4.52.4", "4.43.4"), MINORS, has_repairs=True),
    "vllm": Runtime(
        "vLLM",
        ("0.33.0",),
        ("0.10.2", "0.8.5", "0.6.6"),
        has_repairs=True,
        of_one_type={"deepseek_v4": VLLM_DEEPSEEK_V4},
    ),
    "sglang": Runtime("SGLang", ("0.5.23",), ("0.4.6",), of_one_type={"deepseek_v4": SGLANG_DEEPSEEK_V4}),
    "llama.cpp": Runtime("llama.cpp", ("0c1e57098 (llama-cpp-python 0.3.36)",)),
    "mlx-lm": Runtime("mlx-lm", ("0.32.2",)),
    "tensorrt-llm": Runtime(
        "TensorRT-LLM",
        ("functional.py@0071496 + _torch/attention_backend/interface.py@000a01d (two stored versions)",),
        is_one_release=True,
    ),
    "paper": Runtime(TEXTS("release.paper"), ("2309.00071",), is_one_release=True),
}
"""Every runtime that can be emulated, in the order in which they are compared."""

RUNTIMES = tuple((name, release) for name, runtime in RELEASES.items() for release in runtime.today)
"""(runtime, release) of those that are compared by default."""

OLDER = tuple((name, release) for name, runtime in RELEASES.items() for release in runtime.older)
"""(runtime, release) of those that a user may ask for in place of today's."""

MLX_VLM = "0.7.10"
"""mlx-vlm, which reads images and videos where mlx-lm reads text."""


def find_minor(release: str) -> tuple[int, ...]:
    """Return the numbers of a minor release, (5, 10) for 5.10.4, by which releases are ordered."""
    return tuple(int(part) for part in format_version(release).split(".")[:2])


def format_minor(release: str) -> str:
    """Return a minor release as text, 5.10 for 5.10.4."""
    return ".".join(map(str, find_minor(release)))


def is_between(version: str, span: str | list[str] | None) -> bool:
    """Return whether a release is before the one that a span names, or from its first on and before its second."""
    if span is None:
        return False
    first, end = ("0.0", span) if isinstance(span, str) else span
    return find_minor(first) <= find_minor(version) < find_minor(end)


def find_patch(version: str) -> str | None:
    """Return the patch release of transformers 5 that was run for a version such as 5.10 or 5.10.2; None for others."""
    if re.fullmatch(r"v?5\.\d{1,3}(\.\d{1,3})?", version) is None:
        return None
    return next((one for one in ("5.24.0", *MINORS) if find_minor(one) == find_minor(version.removeprefix("v"))), None)


def find_minor_release(version: str, known: Runtime) -> str | None:
    """Return the release that was run of a minor release such as 0.33, None where the third number counts more."""
    if not known.has_repairs or re.fullmatch(r"\d{1,3}\.\d{1,3}", version) is None:
        return None
    return next((one for one in known.releases if find_minor(one) == find_minor(version)), None)


def format_version(release: str) -> str:
    """Return the first word of a release, which is enough to name it."""
    return release.split(" ")[0]


def find_version(runtime: str, place: int = 0) -> str:
    """Return the short version of a runtime: the newest, or the one at this place."""
    return format_version(RELEASES[runtime].releases[place])


def format_name(runtime: str) -> str:
    """Return a runtime's name as its makers write it; an unknown one stays as it is."""
    return RELEASES[runtime].name if runtime in RELEASES else runtime


def format_release(runtime: str, release: str) -> str:
    """Return name and version of a release, as in "vLLM 0.33.0"."""
    name = format_name(runtime)
    return name if RELEASES[runtime].is_one_release else f"{name} {format_version(release)}"


def match_name(name: str, known: Iterable[str]) -> str:
    """Return the known name that differs only in case and punctuation (vLLM: vllm); any other name unchanged."""
    return next((one for one in known if letters_of(one) == letters_of(name)), name)


def resolve_release(runtime: str, version: str | None = None) -> tuple[str, str]:
    """Return the full name and version. Raises `ValueError` that lists what is known."""
    runtime = match_name(runtime, RELEASES)
    if runtime not in RELEASES:
        raise ValueError(f"runtime must be one of {', '.join(RELEASES)}, got {short_repr(runtime)}")
    known = RELEASES[runtime]
    if version is None:
        return runtime, known.today[0]
    versions = [*known.releases, *(release for kind in known.of_one_type for release in known.of_one_type[kind])]
    name = version.removeprefix("v")
    found = next((release for release in versions if name in (release, format_version(release))), None)
    found = found or find_minor_release(name, known)
    if found is None and runtime == "transformers":
        found = find_patch(version)
    if found is None:
        listed, older = known.releases, ""
        if known.older is MINORS:
            listed, older = known.today, f", {format_minor(MINORS[-1])} to {format_minor(MINORS[0])}"
        short = ", ".join(map(format_version, listed)) + older
        more = "".join(f" (for {kind} also {one[-1]} to {one[0]})" for kind, one in known.of_one_type.items())
        raise ValueError(f"version of {runtime} must be one of {short}{more}, got {short_repr(version)}")
    return runtime, found


REFERENCE = format_release(*RUNTIMES[0])
"""The release that the others are compared with, as in "transformers 5.24.0"."""
