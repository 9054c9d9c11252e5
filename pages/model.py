"""One model: what it is, how to serve it with the context that is needed, and what each runtime computes."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from rope_viz.advice.memory.kv_cache import USED, human
from rope_viz.advice.plan.extension_plan import ExtensionPlan
from rope_viz.advice.plan.runtime_instructions import Instructions, format_diff
from rope_viz.advice.training.make_match import Remedy
from rope_viz.advice.training.match_training import Match, describe_match
from rope_viz.advice.verify.identify_rotation import identify, read_values
from rope_viz.figures.words import footnote, plain, plain_with_footnote
from rope_viz.models.identity.shipped_scaling import describe_method
from rope_viz.pages.model import extend, runtimes
from rope_viz.pages.model.extend import words
from rope_viz.pages.model.runtimes import words as runtime_words
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.probe.commands import write_probe_commands
from rope_viz.texts import Texts
from rope_viz.ui import configs, controls, page, state, upload
from rope_viz.ui.components.component import copy_button
from rope_viz.ui.notes import warn
from rope_viz.ui.popovers import popover

TEXTS, EXTEND, TRAINING = Texts("model"), Texts("model/extend"), Texts("model/training")
LARGEST = 64
"""MiB that the field accepts: above the limit of such a file, because Streamlit rejects files without a message."""


def show() -> None:
    """Show the page."""
    request = page.picture_request(extend.PAGE)
    problem = extend.problem(request)
    _model(request, None if problem else extend.answer(request))
    if problem:
        page.paragraph(problem)
        _runtimes(request)
        return
    with st.container(key="needed"), page.row():
        page.controls(extend.TARGET, extend.RUNTIMES)
    plan = extend.answer(request)
    left, right = st.columns([11, 8], gap="large")
    with left, st.container(key="answer"):
        _answer(plan)
    with right:
        _memory(request, plan)
        if not plan.refused:
            _cost(plan)
    page.picture_sentence(extend.layers)
    page.show(extend.layers)
    _details(request, plan)
    page.link("compare", TEXTS("compare"))


def _model(request: PictureRequest, plan: ExtensionPlan | None) -> None:
    """Show which model it is in one line, and the ways to another one."""
    worst = "none" if plan is None else next((one.severity for one in plan.found), "none")
    name = request.subject.name if plan is None else plan.recognised.name
    left, right = st.columns([12, 7], vertical_alignment="center", gap="medium")
    with left, st.container(key="model", horizontal=True, vertical_alignment="center", gap="small"):
        st.html(f'<span class="rv-mark rv-{worst}" role="img" aria-label="{TEXTS(f"found.{worst}")}"></span>', width=30)
        st.title(plain(name), anchor=False, width="content")
        with st.container(key="facts", width="content"):
            st.markdown(join_facts(request, plan))
    with right, st.container(key="other", horizontal=True, vertical_alignment="center"):
        upload.drop_field()
        with popover(TEXTS("other"), "pick"):
            controls.model_menu()
            controls.layer_menu()
            upload.paste_field()
            upload.state_of_config()


def join_facts(request: PictureRequest, plan: ExtensionPlan | None) -> str:
    """Return the facts next to the model's name, with the source of its length as a footnote."""
    spec = request.subject.start
    method = describe_method(spec)
    facts = [
        *([] if plan is None else [_trained(plan)]),
        TEXTS("facts.base", base=spec.base),
        TEXTS("facts.pairs", pairs=spec.pairs),
        method,
        *([] if plan is None or not plan.found else [configs.summed_up(plan.config)]),
    ]
    return " · ".join(facts)


def _trained(plan: ExtensionPlan) -> str:
    trained = plan.recognised.trained
    return TEXTS("facts.length", name=trained.name, length=trained.length) + footnote(trained.source)


def _answer(plan: ExtensionPlan) -> None:
    """Show the verdict, its reason, what to copy and what was checked."""
    st.header(words.headline(plan), anchor=False)
    st.markdown(words.reason(plan))
    one = plan.instructions[0] if plan.instructions else None
    if one is None:
        if not plan.refused:
            st.markdown(TEXTS("no_runtime"))
        return
    with st.container(key="command"):
        st.code(one.command, language="bash", wrap_lines=True)
    copy, file = st.columns(2)
    with copy:
        copy_button("copy.command", TEXTS("copy"), one.command)
    with file:
        if plan.file.fit:
            configs.download(TEXTS("download"), plan.file.config, "whole", stretch=True)
    st.caption(plain(one.proof))


def _memory(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show weights and cache as a bar against one GPU of a chosen size."""
    size = int(request[extend.GPU])
    memory = plan.memory
    if memory.cache is None:
        st.markdown(f"**{TEXTS('memory.title')}**  \n{words.unknown(plan)}")
        return
    room = USED * size * 1e9 - memory.weights
    longest = 0 if room <= 0 else memory.cache.longest(room, memory.sequences)
    fits = memory.weights + memory.cached <= USED * size * 1e9
    st.markdown(f"**{TEXTS('memory.fits' if fits else 'memory.too_large', size=size)}**")
    whole = max(size * 1e9, memory.weights + memory.cached)
    parts = {"weights": memory.weights, "cache": memory.cached}
    bars = "".join(
        f'<i class="rv-{name}" style="width:{100 * value / whole:.2f}%">{human(value)}</i>'
        for name, value in parts.items()
    )
    limit = 100 * USED * size * 1e9 / whole
    label = TEXTS("memory.bar", weights=human(memory.weights), cache=human(memory.cached), size=size)
    st.html(
        f'<div class="rv-memory" role="img" aria-label="{label}"><div>{bars}<b style="left:{limit:.2f}%"></b></div>'
        f'<p><span class="rv-weights">{TEXTS("memory.weights")}</span>'
        f'<span class="rv-cache">{TEXTS("memory.cache", count=memory.sequences)}</span>'
        f"<span>{TEXTS('memory.limit', size=size)}</span></p></div>"
    )
    key = "any" if longest is None else "none" if longest == 0 else "longest"
    st.markdown(TEXTS(f"memory.{key}", stored=memory.stored, length=longest or 0))
    with popover(TEXTS("memory.change"), "memory"):
        page.controls(extend.GPU, extend.SEQUENCES, extend.DTYPE)
        st.markdown(words.memory(plan))


def _cost(plan: ExtensionPlan) -> None:
    """Say what the method costs short texts, and how well long texts were measured."""
    st.markdown(f"**{TEXTS('cost')}**")
    short = words.list_costs(plan)
    st.markdown("\n\n".join(short))


def _details(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show the evidence in tabs; only the open one is computed."""
    shown = (_changes, _why, _runtime_tab, _training, _verify)
    st.session_state["choice.tab"] = extend.TABS[request[extend.TAB]]
    tabs = st.tabs(list(extend.TABS.values()), key="choice.tab", on_change=_open_tab)
    for show_tab, tab in zip(shown, tabs, strict=True):
        if tab.open:
            with tab:
                show_tab(request, plan)


def _open_tab() -> None:
    label = st.session_state["choice.tab"]
    name = next((name for name, each in extend.TABS.items() if each == label), "changes")
    state.set_param(extend.TAB.key, name, default="changes")


def _changes(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show the new config.json as a diff, or why the page offers no file, and how to configure each runtime."""
    st.markdown(words.describe_support(plan))
    if plan.file.fragment:
        changed = format_diff(plan.config, plan.file.config)
        st.code(changed, language="diff", wrap_lines=True, height=360 if changed.count("\n") > 20 else "content")
    if not plan.file.fit:
        st.markdown(EXTEND("no_download", problem=plain(plan.file.findings[0].message)))
    if not plan.instructions and not plan.refused:
        st.markdown(EXTEND("no_runtime"))
    for one in plan.instructions:
        st.subheader(one.name, anchor=False)
        proof = plain_with_footnote(one.proof, one.made.known.source.rstrip("."))
        st.markdown(proof.replace("Checked:", "**Checked:**"))
        if one.text and one.text not in one.command:
            st.code(one.text, language=one.language, wrap_lines=True, height=_height(one.text))
        st.code(one.command, language="bash", wrap_lines=True)
        for note in one.notes:
            st.caption(plain(note))


def _why(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show which model the config is, which of its lengths are wrong, and how the method was chosen."""
    st.markdown(words.have(plan))
    if plan.recognised.mistakes:
        st.markdown(words.list_mistakes(plan))
    configs.listed_findings(plan.found)
    page.controls(extend.TRAINED, extend.WAY)
    page.picture_sentence(extend.ways)
    page.show(extend.ways)
    for picture in (extend.speeds, extend.options, extend.memory):
        page.picture_sentence(picture)
        page.show(picture)
    page.link("recall", TEXTS("recall"))
    page.explain("model/extend")


def _runtime_tab(request: PictureRequest, plan: ExtensionPlan) -> None:
    _runtimes(request)


def _runtimes(request: PictureRequest) -> None:
    """Show what each runtime computes from the config, and what is wrong with it."""
    asked = page.picture_request(runtimes.PAGE)
    if runtimes.diffusion(asked):
        st.markdown(runtimes.diffusion(asked))
        page.link("axes", TEXTS("axes"))
        _all_models()
        return
    page.controls(runtimes.AT, runtimes.VLLM, runtimes.SGLANG)
    page.picture_sentence(runtimes.curves)
    page.show(runtimes.curves)
    page.legend(runtime_words.describe_marks(runtimes.answers(asked)))
    page.picture_sentence(runtimes.matrix)
    page.show(runtimes.matrix)
    page.paragraph(f"{runtime_words.TABLE} {runtime_words.counts()}")
    if runtimes.several(asked):
        page.section(TEXTS("several"), says=runtimes.axes)
        page.show(runtimes.axes)
        page.link("axes", TEXTS("axes"))
    page.section(TEXTS("check"))
    configs.findings(runtimes.config_in_question(asked))
    _all_models()
    page.explain("model/runtimes")


def _all_models() -> None:
    page.section(TEXTS("all"), says=runtimes.models)
    page.controls(runtimes.ALL)
    page.show(runtimes.models)


def _training(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show trainers against servers, and what makes the chosen server match."""
    request = page.picture_request(runtimes.PAGE)
    problem = runtimes.unmatched(request)
    if problem:
        page.paragraph(problem)
        return
    page.controls(runtimes.AT, runtimes.VLLM, runtimes.SGLANG)
    page.picture_sentence(runtimes.training)
    page.show(runtimes.training)
    page.legend(TRAINING("legend"))
    match = runtimes.chosen_match(request)
    with st.container(key="match"):
        _match(match)
        _remedy(match, runtimes.chosen_remedy(request))
        st.caption(TRAINING("command"))
        page.code(runtime_words.write_command(match), "bash")
    _identify(request)


def _match(match: Match) -> None:
    """Show by how much the chosen trainer and server differ, and why."""
    training, server = match.training, match.emulation
    page.section(TRAINING("pair", trainer=training.name, server=server.name))
    st.markdown(plain(describe_match(match)))
    rules = [plain(rule.text) for rule in training.rules]
    source = f"{TRAINING(f'evidence.{training.evidence}')}: {training.trainer.source}"
    st.markdown("\n".join(f"- {text}" for text in [*rules[:-1], *(f"{text}{footnote(source)}" for text in rules[-1:])]))


def _remedy(match: Match, remedy: Remedy) -> None:
    """Show what makes the server compute what was trained, or why nothing does."""
    st.subheader(TRAINING("match.title"), anchor=False)
    server = match.emulation.name
    if remedy.reason:
        st.markdown(plain(remedy.reason))
    if not remedy.text:
        return
    key = "closest" if not remedy.matches else "config" if remedy.is_config else "options"
    st.markdown(TRAINING(f"match.{key}", server=plain(server)))
    with st.container(key="remedy"):
        page.code(remedy.text, "json" if remedy.is_config else "bash")


def _identify(request: PictureRequest) -> None:
    """Show the field to drop frequencies or rotated vectors into, and what they are."""
    page.section(TRAINING("identify.title"))
    file = st.file_uploader(
        TRAINING("identify.drop"), key="identify.file", help=TRAINING("identify.help"), max_upload_size=LARGEST
    )
    if file is None:
        return
    try:
        values = read_values(file.name, file.getvalue())
    except ValueError as error:
        warn(TRAINING("identify.refused", problem=str(error).rstrip(".")))
        return
    asked = runtimes.config_in_question(request)
    try:
        found = identify(values, asked.clean, asked.layer)
    except ValueError as error:
        warn(TRAINING("identify.uncompared", problem=str(error).rstrip(".")))
        return
    with st.container(key="identified"):
        st.markdown(runtime_words.describe_rotation(found))


def _verify(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show a verification snippet per runtime, the log line to look for, and the passkey test."""
    st.markdown(EXTEND("verify"))
    for one in plan.instructions:
        st.subheader(EXTEND("verify_in", name=one.name), anchor=False)
        _check(one, plan.verify_command)
        _probe(request, one)
    st.markdown(EXTEND("passkey"))
    server = "rope-viz evaluate --server extended=http://localhost:8000/v1 -o recall.json"
    st.code(server, language="bash", wrap_lines=True)


def _check(one: Instructions, command: str) -> None:
    shell = one.runtime == "llama.cpp"
    st.code(one.check, language="bash" if shell else "python", wrap_lines=True, height=_height(one.check))
    if not shell:
        st.code(command, language="bash", wrap_lines=True)
    if one.log:
        st.markdown(EXTEND("log", line=one.log))


def _probe(request: PictureRequest, one: Instructions) -> None:
    """Show the commands that ask a runtime with a probe in the place of the weights."""
    commands = write_probe_commands(runtimes.config_in_question(request).clean, one)
    if commands:
        st.markdown(EXTEND("probe"))
        st.code(commands, language="bash", wrap_lines=True)


def _height(text: str) -> int | Literal["content"]:
    return 320 if text.count("\n") > 14 or len(text) > 1600 else "content"


show()
