"""The runtimes that are emulated, how their makers write their names, and their releases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rope_viz.embedding.spec import short_repr
from rope_viz.models.no_rope_types import letters_of


@dataclass(frozen=True)
class Runtime:
    """One runtime: its name as its makers write it, today's releases and older ones, the newest first.

    `is_one_release` is True where no version is worth showing: a paper, and snapshots that are no release.
    `has_repairs` is True where the third number of a release counts repairs only.
    """

    name: str
    today: tuple[str, ...]
    older: tuple[str, ...] = ()
    is_one_release: bool = False
    has_repairs: bool = False

    @property
    def releases(self) -> tuple[str, ...]:
        """All releases, today's first."""
        return (*self.today, *self.older)


RELEASES: dict[str, Runtime] = {
    "transformers": Runtime("transformers", ("5.24.0", "4.57.6", "4.52.4", "4.43.4"), ("5.23.0",), has_repairs=True),
    "vllm": Runtime("vLLM", ("0.33.0",), ("0.10.2", "0.8.5", "0.6.6"), has_repairs=True),
    "sglang": Runtime("SGLang", ("0.5.23",), ("0.4.6",)),
    "llama.cpp": Runtime("llama.cpp", ("0c1e57098 (llama-cpp-python 0.3.36)",)),
    "mlx-lm": Runtime("mlx-lm", ("0.32.2",)),
    "tensorrt-llm": Runtime(
        "TensorRT-LLM",
        ("functional.py@0071496 + _torch/attention_backend/interface.py@000a01d (two stored versions)",),
        is_one_release=True,
    ),
    "paper": Runtime("the YaRN paper", ("2309.00071",), is_one_release=True),
}
"""Every runtime that can be emulated, in the order in which they are compared."""

RUNTIMES = tuple((name, release) for name, runtime in RELEASES.items() for release in runtime.today)
"""(runtime, release) of those that are compared by default."""

OLDER = tuple((name, release) for name, runtime in RELEASES.items() for release in runtime.older)
"""(runtime, release) of those that a user may ask for in place of today's."""

MLX_VLM = "0.7.10"
"""mlx-vlm, which reads images and videos where mlx-lm reads text."""


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
    versions = RELEASES[runtime].releases
    if version is None:
        return runtime, versions[0]
    found = next((release for release in versions if version in (release, format_version(release))), None)
    if found is None:
        short = ", ".join(map(format_version, versions))
        raise ValueError(f"version of {runtime} must be one of {short}, got {short_repr(version)}")
    return runtime, found


REFERENCE = format_release(*RUNTIMES[0])
"""The release that the others are compared with, as in "transformers 5.24.0"."""
