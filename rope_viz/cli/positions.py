"""The command `positions`: are the positions of packed documents reset, padded and offset as they should be?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rope_viz.cli.find_pictures import describe_formats, render
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.output import named, write_output
from rope_viz.cli.spec import NAMES, read_config, read_model, tokens
from rope_viz.embedding.spec import RopeSpec
from rope_viz.storage.read_file import read_limited
from rope_viz.studies.packed_positions import (
    EXAMPLE,
    SUFFIXES,
    Form,
    PositionFault,
    Row,
    count_distances,
    find_faults,
    make_rows,
    parse_lengths,
    read_rows,
)

MOST_SHOWN = 20

LARGEST = 64 << 20
"""Bytes of a file with positions: four million of them, and a mask, as JSON."""


def add(commands: Any) -> None:
    """Add `positions` and its flags."""
    parser = commands.add_parser(
        "positions",
        description="Find positions of packed documents that are not reset, offset, repeated or left out. Exit code 0: "
        "all are as they should be. 1: some are not. 2: the input is invalid.",
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help=f"position_ids as {', '.join(SUFFIXES)}; as JSON {EXAMPLE}"
    )
    parser.add_argument("--lengths", metavar="N,N,…", help="lengths of the documents of a row, in place of cu_seqlens")
    parser.add_argument(
        "--continued", action="store_true", help="a whole row counts on: documents see the ones before them"
    )
    parser.add_argument("--config", metavar="CONFIG", help=f"the model, whose limit no position may reach: {NAMES}")
    parser.add_argument("--limit", type=tokens, help="that limit, such as 8k, in place of the model's")
    parser.add_argument("-o", "--output", metavar="FILE", help="the distances as plot.svg, .pdf, .png, .html or .csv")
    parser.add_argument("--json", action="store_true", help="as JSON, with every finding")
    add_hub_flag(parser)
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run `positions` and return its exit code."""
    if parsed.file is None and parsed.lengths is None:
        raise ValueError("name a file with position_ids, or the documents by --lengths 512,300,4096")
    lengths = None if parsed.lengths is None else parse_lengths(parsed.lengths)
    form: Form = "continued" if parsed.continued else "reset"
    if parsed.file is None:
        rows = make_rows(lengths or (), form)
    else:
        with named(parsed.file):
            rows = read_rows(parsed.file, read_limited(parsed.file, LARGEST), lengths)
    limit = parsed.limit
    if limit is None and parsed.config is not None:
        with named(parsed.config):
            limit = read_model(parsed.config, read_config(parsed.config)).limit
    faults = find_faults(rows, form=form, limit=limit)
    if parsed.json:
        print(json.dumps(make_report(rows, faults), indent=2))
    else:
        print_report(rows, faults)
    if parsed.output is not None:
        draw(rows, parsed.output, parsed.config)
    return int(any(fault.is_wrong for fault in faults))


def make_report(rows: Sequence[Row], faults: Sequence[PositionFault]) -> dict[str, Any]:
    """Return findings and distances as JSON data."""
    within, whole = (count_distances(rows, crossing=crossing) for crossing in (False, True))
    return {
        "rows": len(rows),
        "documents": [len(row.documents) for row in rows],
        "documents_known": rows[0].is_known,
        "right": not any(fault.is_wrong for fault in faults),
        "findings": [
            {
                "kind": fault.kind,
                "level": "error" if fault.is_wrong else "note",
                "row": fault.row,
                "first": fault.first,
                "last": fault.last,
                "sentence": fault.text,
            }
            for fault in faults
        ],
        "distances": {
            "pairs_within_documents": within.total,
            "pairs_of_whole_rows": whole.total,
            "largest": within.largest,
            "half_within": within.quantile(0.5),
            "negative_share_of_whole_rows": whole.negative,
        },
    }


def print_report(rows: Sequence[Row], faults: Sequence[PositionFault]) -> None:
    """Print the findings, at most `MOST_SHOWN` of them, and the distances."""
    documents, size = sum(len(row.documents) for row in rows), sum(len(row.positions) for row in rows)
    known = "" if rows[0].is_known else ", as far as positions tell: give cu_seqlens or --lengths to be sure"
    print(f"{len(rows):,} rows of {size // len(rows):,} tokens, {documents:,} documents{known}")
    for fault in faults[:MOST_SHOWN]:
        level = "wrong" if fault.is_wrong else "note "
        print(f"{level} row {fault.row}, tokens {fault.first:,}–{fault.last:,}: {fault.text}")
    if len(faults) > MOST_SHOWN:
        print(f"and {len(faults) - MOST_SHOWN:,} more (--json has all)")
    if not any(fault.is_wrong for fault in faults):
        print("All positions are as they should be.")
    within, whole = (count_distances(rows, crossing=crossing) for crossing in (False, True))
    print(f"distances within documents: up to {within.largest:,}, half of the pairs within {within.quantile(0.5):,}")
    if whole.negative:
        print(f"without a mask of documents {100 * whole.negative:.3g} % of the pairs have a negative distance")


def draw(rows: Sequence[Row], output: str, config: str | None) -> None:
    """Write the picture of the distances. Raise `ValueError` for an unknown format."""
    from rope_viz.figures.files.style import Style
    from rope_viz.models.read_upload import single_axis_upload
    from rope_viz.models.spec_url import CUSTOM, Subject
    from rope_viz.pages import decay
    from rope_viz.picture import export
    from rope_viz.picture.choices import StoredValue
    from rope_viz.picture.picture_request import PictureRequest

    form = Path(output).suffix.lower().removeprefix(".")
    if form not in export.FORMS or form == "packed":
        raise ValueError(describe_formats(output, None, [*export.FORMS]))
    if config is None:
        # Without a model there is no trained length, so none is drawn.
        largest = int(max(row.positions.max() for row in rows))
        subject = Subject(RopeSpec(context=max(64, largest + 1)))
    else:
        with named(config):
            own = single_axis_upload(read_config(config))
        subject = Subject(own.specs[own.layer], CUSTOM, own.layer, own)
    request = PictureRequest(subject, given={decay.PACKED.key: StoredValue("", list(rows))})
    write_output(output, render(decay.distances, request, form, Style()))
