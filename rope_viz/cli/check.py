"""The command `check`: report errors in config.json files as text, JSON or SARIF, and by the exit code.

0: nothing at or above the level of --fail-on (default: warning). 1: at worst a note or a warning. 2: an error. 3: a
file could not be read. pyproject.toml may set the level and ignored rules:

    [tool.rope-viz]
    fail-on = "error"
    ignore = ["dynamic-cache"]
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import sys
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TextIO, TypeAlias

from rope_viz import __version__
from rope_viz.advice.lint import (
    COMMON_NOTES,
    SEVERITIES,
    Finding,
    check,
    make_repairs,
    sort_by_severity,
)
from rope_viz.advice.lint.check_text import check_text, explain_rule, rules
from rope_viz.cli.broken_pipe import shorten_name
from rope_viz.cli.find_configs import NO_CONFIG, find_configs, make_reader, search_folder
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.output import named, one_line
from rope_viz.cli.override_flags import Override, add_override_flags, read_override
from rope_viz.models.formats.json_repair import describe_fixes, read_lenient
from rope_viz.models.formats.json_source import Raw, find_key_lines
from rope_viz.models.model_config import ModelConfig
from rope_viz.storage.read_file import read_limited_text

EXIT = {"error": 2, "warning": 1, "note": 1}
UNREAD = 3


@dataclass(frozen=True)
class FileReport:
    """One file with its findings and its text; `raw` is None if it could not be read."""

    name: str
    findings: tuple[Finding, ...]
    raw: Raw | None

    @property
    def code(self) -> int:
        """Return the exit code for these findings."""
        return UNREAD if self.raw is None else max([0, *(EXIT[finding.severity] for finding in self.findings)])


def add(commands: Any) -> None:
    """Add the command and its flags."""
    linted = commands.add_parser(
        "check",
        description="Find errors in config.json files. Exit code 0: no finding at or above --fail-on. 1: at worst a "
        "note or a warning. 2: an error. 3: a file could not be read. In pre-commit and CI, name files or folders.",
    )
    linted.add_argument("files", nargs="*", metavar="CONFIG", help="config.json, a folder, a model's name, - for stdin")
    linted.add_argument(
        "--format", choices=("text", "json", "sarif"), default="text", help="output format; sarif is for code hosts"
    )
    linted.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    linted.add_argument(
        "--sarif", dest="format", action="store_const", const="sarif", help="the same as --format sarif"
    )
    linted.add_argument(
        "--fail-on", choices=SEVERITIES, help="the least severity that sets the exit code; default: warning"
    )
    linted.add_argument(
        "--ignore", action="append", default=[], metavar="RULE", help="leave a rule out; may be repeated"
    )
    linted.add_argument(
        "--trainer", metavar="NAME[=VERSION]", help="also find what this trainer computes otherwise than transformers"
    )
    add_override_flags(linted)
    linted.add_argument("--draft", metavar="CONFIG", help="check that this draft model fits (speculative decoding)")
    linted.add_argument("--explain", metavar="RULE", help="print what a rule looks for, and its source")
    linted.add_argument("--all-notes", action="store_true", help="also print notes that most configs get")
    linted.add_argument("-v", "--verbose", action="store_true", help="name every file of a folder that is no config")
    linted.add_argument(
        "--repair",
        action="store_true",
        help="print the repaired config (one file) and check that; also repairs commas, comments and quotes of JSON",
    )
    add_hub_flag(linted)
    linted.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if parsed.explain is not None:
        print(explain_rule(parsed.explain))
        return 0
    settings = from_pyproject(Path.cwd())
    ignored = checked_rules([name for given in parsed.ignore for name in given.split(",")], "--ignore")
    ignored += checked_rules(settings.get("ignore", []), "ignore in pyproject.toml")
    level = parsed.fail_on or settings.get("fail-on", "warning")
    if level not in SEVERITIES:
        raise ValueError(f"fail-on in pyproject.toml must be one of {', '.join(SEVERITIES)}, got {level!r}")
    if not parsed.files:
        raise ValueError(
            "check needs a config.json, a folder, a model of the list or of the local cache, or - for stdin"
        )
    if parsed.repair:
        return print_repaired(parsed.files, ignored, level)
    reports = [report for name in parsed.files for report in reports_of(name, ignored, parsed.verbose)]
    override = read_override(parsed)
    if override is not None:
        reports = [one for report in reports for one in add_override(report, override, ignored)]
    if parsed.draft is not None:
        reports = [add_draft(report, parsed.draft, ignored) for report in reports]
    if parsed.trainer is not None:
        reports = [add_training(report, parsed.trainer, ignored) for report in reports]
    if parsed.format == "json":
        made = [as_dict(report) for report in reports]
        print(json.dumps(made if len(made) > 1 else made[0], indent=2))
    elif parsed.format == "sarif":
        print(
            json.dumps(make_sarif([(report.name, report.findings, find_lines(report)) for report in reports]), indent=2)
        )
    else:
        hidden = () if parsed.all_notes or level == "note" else COMMON_NOTES
        for report in reports:
            print_findings(report, hidden=hidden)
        print_hidden_notes(reports, hidden)
    return exit_code(reports, level)


def exit_code(reports: Sequence[FileReport], level: str) -> int:
    """Return the highest exit code of all files, ignoring findings below `level`."""
    worst = SEVERITIES[: SEVERITIES.index(level) + 1]
    counted = [
        dataclasses.replace(one, findings=tuple(finding for finding in one.findings if finding.severity in worst))
        for one in reports
    ]
    return max((report.code for report in counted), default=0)


def reports_of(name: str, ignored: Sequence[str], verbose: bool = False) -> Iterator[FileReport]:
    """Yield a report for each config of this name; of a folder, say on stderr which of its files are no configs."""
    try:
        sources = find_sources(name, verbose)
    except (ValueError, OSError) as error:
        yield FileReport(name, (Finding("unreadable", "error", "", one_line(error)),), None)
        return
    for shown, read in sources:
        try:
            raw, findings = check_text(read())
        except (ValueError, OSError) as error:
            yield FileReport(shown, (Finding("unreadable", "error", "", one_line(error)),), None)
            continue
        yield FileReport(shown, tuple(finding for finding in findings if finding.rule not in ignored), raw)


def add_training(report: FileReport, trainer: str, ignored: Sequence[str]) -> FileReport:
    """Return the report with what a trainer, NAME or NAME=VERSION, computes otherwise."""
    from rope_viz.advice.lint.training_rules import find_training_differences

    name, _, version = trainer.partition("=")
    found = [] if report.raw is None else find_training_differences(report.raw.config, name, version or None)
    more = tuple(finding for finding in found if finding.rule not in ignored)
    return dataclasses.replace(report, findings=(*report.findings, *more))


def add_draft(report: FileReport, draft: str, ignored: Sequence[str]) -> FileReport:
    """Return the report with what does not fit between this config and a draft model's."""
    from rope_viz.advice.lint.training_rules import find_draft_mistakes
    from rope_viz.cli.spec import read_config

    other = ModelConfig.read(read_config(draft))
    if report.raw is None or "draft" in ignored:
        return report
    with named(draft):
        found = find_draft_mistakes(ModelConfig.read(report.raw.config), other)
    return dataclasses.replace(report, findings=tuple(sort_by_severity([*report.findings, *found])))


def add_override(report: FileReport, override: Override, ignored: Sequence[str]) -> Iterator[FileReport]:
    """Yield a report for each way in which loaders merge an override into a config; loaders that agree share one."""
    if report.raw is None:
        yield report
        return
    model = ModelConfig.read(report.raw.config)
    try:
        ways = override.merge_all(model)
    except ValueError:  # the findings of the file say what is wrong
        yield report
        return
    while ways:
        first, same = ways[0], [way for way in ways if dataclasses.replace(way, loader=ways[0].loader) == ways[0]]
        ways = [way for way in ways if way not in same]
        # It is no file, so what older releases make of its keys does not matter.
        found = [] if first.refusal else check(first.config, without=("runtimes-differ",))
        found += [Finding("override", "warning", override.flag, f"{note}.") for note in first.notes]
        if first.refusal:
            found.append(Finding("override", "error", override.flag, f"{first.refusal}."))
        name = f"{report.name} with {override.flag} ({', '.join(way.loader for way in same)})"
        kept = tuple(one for one in sort_by_severity(found) if one.rule not in ignored)
        yield FileReport(name, kept, dataclasses.replace(report.raw, config=first.config))


def find_sources(name: str, verbose: bool) -> Sequence[tuple[str, Callable[[], bytes]]]:
    """Return the configs of a name as `find_configs` does, and of a folder all that are configs by content."""
    folder = Path(name)
    if not name.strip() or not folder.is_dir():
        return find_configs(name)
    found = search_folder(folder)
    skipped = found.describe_skipped(every=verbose)
    if skipped:
        print(f"rope-viz: {skipped}{'' if verbose else ' (-v: all names)'}", file=sys.stderr)
    if not found.configs:
        raise ValueError(NO_CONFIG)
    return [(str(path), make_reader(path)) for path in found.configs]


def print_repaired(names: Sequence[str], ignored: Sequence[str], level: str) -> int:
    """Print the repaired config of a single file and return the exit code of checking it; the rest goes to stderr.

    A file that is almost JSON is repaired for its syntax first; see `rope_viz.models.formats.json_repair`.
    """
    if len(names) != 1:
        raise ValueError("--repair takes one file")
    try:
        with named(names[0]):
            sources = list(find_configs(names[0]))
            read = read_lenient(sources[0][1]()) if len(sources) == 1 else None
    except ValueError as error:
        print(f"rope-viz: {one_line(error)}", file=sys.stderr)
        return UNREAD
    if read is None:
        raise ValueError("--repair takes one file")
    source, fixes = read
    with named(names[0]):
        repaired, repairs = make_repairs(source.config)
        text = json.dumps(repaired, indent=2)
        raw, findings = check_text(text)
    print(text)
    if fixes:
        print(f"rope-viz: {names[0]}: repaired the JSON syntax: {describe_fixes(fixes)}", file=sys.stderr)
    if repairs:
        print("rope-viz: repaired:", file=sys.stderr)
        print_findings(FileReport(names[0], repairs, raw), file=sys.stderr)
    left = FileReport(names[0], tuple(finding for finding in findings if finding.rule not in ignored), raw)
    if left.findings:
        print("rope-viz: not repaired:", file=sys.stderr)
        print_findings(left, file=sys.stderr)
    return exit_code([left], level)


def checked_rules(names: Any, where: str) -> list[str]:
    """Return the names if all are rules. Raise `ValueError` that names the first unknown one."""
    known = rules()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{where} must be a list of rules")
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            meant = f". Did you mean {close[0]!r}?" if close else f"; rules are {', '.join(sorted(known))}"
            raise ValueError(f"{where}: unknown rule {name!r}{meant}")
    return list(names)


def from_pyproject(folder: Path) -> dict[str, Any]:
    """Read [tool.rope-viz] of the nearest pyproject.toml, here or above. Raise `ValueError` for an unknown key."""
    path = next(
        (place / "pyproject.toml" for place in (folder, *folder.parents) if (place / "pyproject.toml").is_file()), None
    )
    if path is None:
        return {}
    from rope_viz.storage.decode_toml import decode_toml

    try:
        table: Any = decode_toml(read_limited_text(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: {one_line(error)}") from None
    for name in ("tool", "rope-viz"):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"{path.name}: {name} must be a table, with ignore and fail-on in [tool.rope-viz]")
    unknown = sorted(set(table) - {"ignore", "fail-on"})
    if unknown:
        raise ValueError(f"{path.name}: unknown key {unknown[0]!r} in [tool.rope-viz]; keys are ignore and fail-on")
    return dict(table)


def as_dict(report: FileReport) -> dict[str, Any]:
    """Return a report as JSON data."""
    from rope_viz.cli.spec import describe_lengths, read_model

    return {
        "file": report.name,
        "readable": report.raw is not None,
        **({} if report.raw is None else describe_lengths(read_model(report.name, report.raw.config))),
        "findings": [finding_dict(finding) for finding in report.findings],
    }


def finding_dict(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON data."""
    effect = finding.effect
    return {**dataclasses.asdict(finding), "effect": effect and {"ratio": effect.ratio, "pair": effect.pair}}


def print_findings(report: FileReport, file: TextIO | None = None, hidden: Sequence[str] = ()) -> None:
    """Print the findings of one file, one per line, but notes of the `hidden` rules."""
    name = shorten_name(report.name)
    shown = [one for one in report.findings if not is_hidden(one, hidden)]
    for finding in shown:
        effect = finding.effect
        size = f" [frequencies up to x{effect.ratio:.4g}, pair {effect.pair}]" if effect else ""
        place = f" {finding.key}:" if finding.key else ""
        print(
            f"{shorten_name(report.name)}: {finding.severity}:{place} {finding.message}{size} ({finding.rule})",
            file=file,
        )
    if not shown:
        print(f"{name}: No problems found.", file=file)


def print_hidden_notes(reports: Sequence[FileReport], hidden: Sequence[str]) -> None:
    """Print one line with how many files have notes of the `hidden` rules."""
    counts = [(rule, sum(any(one.rule == rule for one in report.findings) for report in reports)) for rule in hidden]
    named = ", ".join(f"{rule} in {count:,} {'file' if count == 1 else 'files'}" for rule, count in counts if count)
    if named:
        print(f"Common notes, shown by --all-notes: {named}.")


def is_hidden(finding: Finding, hidden: Sequence[str]) -> bool:
    """Return whether a finding is a note of one of these rules."""
    return finding.severity == "note" and finding.rule in hidden


def find_lines(report: FileReport) -> dict[str, tuple[int, int]]:
    """Return {key in the config: (line, column)}, {} for an unreadable file."""
    return {} if report.raw is None else find_key_lines(report.raw.text)


Spots: TypeAlias = Mapping[str, tuple[int, int]]
# SARIF 2.1.0, which code hosts display at the line of a change:
# https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def make_sarif(reports: Sequence[tuple[str, Sequence[Finding], Spots]]) -> dict[str, Any]:
    """Return one SARIF run over all files, with the rules that have findings, sorted by name."""
    known = rules()
    named = sorted({finding.rule for _, findings, _ in reports for finding in findings})
    described = [
        {"id": name, "shortDescription": {"text": known[name].what}, "help": {"text": known[name].text}}
        for name in named
    ]
    results = [
        sarif_result(finding, named.index(finding.rule), name, spots)
        for name, findings, spots in reports
        for finding in findings
    ]
    driver = {"name": "rope-viz", "version": __version__, "rules": described}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def sarif_result(finding: Finding, index: int, name: str, spots: Spots) -> dict[str, Any]:
    """Return one finding at its line, or at the top of the file if it concerns no key."""
    line, column = nearest_spot(finding.key, spots)
    effect = finding.effect
    size = f" Frequencies up to x{effect.ratio:.4g}, at pair {effect.pair}." if effect else ""
    place = {"artifactLocation": {"uri": uri(name)}, "region": {"startLine": line, "startColumn": column}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": finding.message + size},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"place/v1": f"{finding.rule}:{finding.key}"},
    }


def nearest_spot(key: str, spots: Spots) -> tuple[int, int]:
    """Return the line and column of a key, or of the nearest enclosing one that exists."""
    parts = key.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((spots[name] for name in names if name in spots), (1, 1))


def uri(name: str) -> str:
    """Return a file's name as a relative reference, "stdin" for standard input."""
    return "stdin" if name == "-" else urllib.parse.quote(PurePath(name).as_posix(), safe="/@")
