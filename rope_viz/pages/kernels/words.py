"""Sentences of the Kernels page, with the current numbers."""

from __future__ import annotations

from rope_viz.embedding.spec import RopeSpec
from rope_viz.kernels.card_files import CardMeasurement
from rope_viz.kernels.measurement_process import MeasurementReport
from rope_viz.pages.kernels import card_figures, figures
from rope_viz.pages.kernels.figures import TEXTS
from rope_viz.texts import Sentence, join
from rope_viz.texts.texts import join_clauses, join_items

NOT_MEASURED = TEXTS.group("not_measured")


def describe_errors(spec: RopeSpec, *, quick: bool = False) -> Sentence:
    """Give the error of the usual ways near the target length, and the largest drawn error of our kernel."""
    return join(
        TEXTS("errors.usual", target=spec.target, float32=figures.error_near(spec, spec.target, "float32 angle")),
        TEXTS("errors.bf16", bf16=figures.error_near(spec, spec.target, "bf16 positions")),
        TEXTS(
            "errors.ours",
            ours=figures.error_anywhere(spec, "fixed-point phase", quick=quick),
            furthest=figures.FARTHEST,
        ),
    )


def explain_measurement() -> Sentence:
    """Explain what a measurement does, before it is started."""
    return join(*(TEXTS(f"measure.{key}") for key in ("about", "compared", "agreement", "time")))


def describe_speed(report: MeasurementReport) -> Sentence:
    """Compare our throughput with a copy and the usual way; by best rounds instead of medians on a busy machine."""
    ran = {way["name"]: way for way in report.ran}
    if not report.ways:
        return TEXTS("speeds.none")
    if "ours, out=" not in ran:
        return describe_workload(report)
    usual = next((way for name, way in ran.items() if name.startswith("eager")), None)
    busy = figures.slowed([way for way in (ran["copy"], ran["ours, out="], usual) if way])
    by = "best_s" if busy else "median_s"
    ours, copy = ran["ours, out="][by], ran["copy"][by]
    rate = {"rate": report.machine["bytes"] / ours / 1e9, "of_copy": copy / ours}
    return join(
        TEXTS("speeds.busy") if busy else "",
        TEXTS("speeds.advice") if busy else "",
        TEXTS("speeds.best_rate" if busy else "speeds.rate", **rate),
        TEXTS("speeds.compared", times=usual[by] / ours, usual=usual["name"]) if usual else "",
        describe_workload(report),
    )


def describe_workload(report: MeasurementReport) -> Sentence:
    """Describe the measured workload and the machine."""
    load, machine = report.workload, report.machine
    pairing = TEXTS(f"pairing_words.{load['pairing']}")
    shape = {name: load[name] for name in ("dtype", "tokens", "heads", "head_dim")}
    workload = TEXTS("speeds.workload", pairing=pairing, torch=machine["torch"], **shape)
    if machine["gpu"]:
        return join(workload, TEXTS("speeds.gpu", device=machine["device"]))
    cpu = "speeds.cpu" if machine["gpu_found"] else "speeds.no_gpu"
    return join(workload, TEXTS(cpu, device=machine["device"], threads=machine["threads"]))


def describe_card(card: CardMeasurement) -> Sentence:
    """Describe what was measured on a GPU, on its largest usual case, and at which commit."""
    case = card.cases[0]
    ours = card_figures.find_time(case, card_figures.OURS)
    heads = case.q[2], case.k[2] if case.k else 0
    shape = {"batch": case.q[0], "tokens": case.q[1], "q_heads": heads[0], "k_heads": heads[1], "head_dim": case.q[3]}
    return join(
        TEXTS("cards.rate", of_copy=ours.share_of_copy, device=card.device, dtype=case.dtype, **shape),
        TEXTS("cards.table") if card_figures.has_waited(card) else "",
        TEXTS("cards.versions", commit=card.commit, torch=card.torch, triton=card.triton, rounds=card.rounds),
    )


def list_missing(card: CardMeasurement) -> Sentence:
    """List what was not measured."""
    return TEXTS("cards.missing", missing=join_clauses([NOT_MEASURED.get(each, each) for each in card.not_measured]))


def list_left_out(report: MeasurementReport) -> Sentence:
    """List the ways that did not run, with reasons; empty if all ran."""
    reasons = join_items([TEXTS("speeds.reason", name=name, why=why) for name, why in report.left_out.items()])
    return TEXTS("speeds.left_out", reasons=reasons) if reasons else Sentence()


def explain_agreement() -> Sentence:
    """Explain the table of differences from float64."""
    return join(TEXTS("agreement.about"), TEXTS("agreement.expected"))
