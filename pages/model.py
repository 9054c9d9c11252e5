"""One model: what it is, how to serve it with the context that is needed, and what each runtime computes."""

from __future__ import annotations

import html
from typing import Literal

import streamlit as st

from rope_viz.advice.lint import summary
from rope_viz.advice.memory.kv_cache import USED, human
from rope_viz.advice.plan.extension_plan import ExtensionPlan, describe_fit
from rope_viz.advice.plan.runtime_instructions import Instructions, format_diff
from rope_viz.advice.plan.runtime_matrix import group_differing
from rope_viz.advice.plan.verdict import find_measured, make_verdict
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
from rope_viz.texts import Texts, join
from rope_viz.texts.sentences import is_made_from, remove_period
from rope_viz.texts.texts import split_at_colon
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
        _setting(request)
        _answer(plan)
    with right:
        _memory(request, plan)
        if not plan.refused:
            _cost(plan)
    if extend.has_mixed_layers(request):
        page.picture_sentence(extend.layers)
        page.show(extend.layers)
    _details(request, plan)
    page.link("compare", TEXTS("compare"))


def _model(request: PictureRequest, plan: ExtensionPlan | None) -> None:
    """Show which model it is in one line, and the ways to another one."""
    name = request.subject.name if plan is None or plan.recognised.how == "fine-tune" else plan.recognised.name
    left, right = st.columns([12, 7], vertical_alignment="center", gap="medium")
    with left, st.container(key="model", horizontal=True, vertical_alignment="center", gap="small"):
        st.title(plain(name), anchor=False, width="content")
        with st.container(key="facts", width="content"):
            st.markdown(join_facts(request, plan))
        if plan is not None and plan.found:
            key = f"found-{plan.found[0].severity}"
            with st.container(key=key, width="content"), popover(summary(plan.found), "found"):
                configs.listed_findings(plan.found)
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
        *([] if plan is None else [*_recognised(plan), _trained(plan)]),
        TEXTS("facts.base", base=spec.base),
        TEXTS("facts.pairs", pairs=spec.pairs),
        method,
    ]
    return " · ".join(facts)


def _recognised(plan: ExtensionPlan) -> list[str]:
    """Return which file it is and how the model was recognised; nothing for a model of the list."""
    known = plan.recognised
    file = [TEXTS("facts.gguf")] if plan.is_gguf else []
    is_own = state.current_choice().subject.own is not None and known.model is not None
    return [*file, *([TEXTS(f"recognised.{known.how}", name=plain(known.name))] if is_own else [])]


def _trained(plan: ExtensionPlan) -> str:
    trained = plan.recognised.trained
    return TEXTS("facts.length", name=trained.name, length=trained.length) + footnote(trained.source)


def _setting(request: PictureRequest) -> None:
    """Say that the answer does not use what the user set on other pages, and offer to use it."""
    unused = extend.find_unused_setting(request)
    if unused is None:
        return
    with st.container(key="setting", horizontal=True, vertical_alignment="center"):
        st.markdown(TEXTS("set", setting=plain(extend.words.describe_setting(unused))), width="content")
        st.button(TEXTS("use"), key="use.setting", on_click=_use_setting)


def _use_setting() -> None:
    state.set_param(extend.WAY.key, "set", default="")


def _answer(plan: ExtensionPlan) -> None:
    """Show the verdict with how sure it is, its reason, what to copy and what was checked."""
    verdict = make_verdict(plan)
    errors = [one for one in plan.found if one.severity == "error"]
    st.header(verdict.headline, anchor=False)
    if verdict.mark:
        st.html(f'<p class="rv-certainty rv-{verdict.look}">{html.escape(verdict.mark, quote=False)}</p>')
    if errors:
        configs.listed_findings(errors)
    measured = find_measured(plan.way)
    if verdict.measured and measured is not None:
        st.markdown(f"**{plain(verdict.measured)}**{footnote(measured.source)}")
    st.markdown(plain(verdict.reason))
    if plan.refused:
        st.markdown(words.refusals(plan))
    one = plan.instructions[0] if plan.instructions else None
    if one is None:
        if not plan.refused:
            st.markdown(TEXTS("no_runtime"))
        return
    if one.is_checked is False:
        st.markdown(f"**{plain(one.proof)}**")
    with st.container(key="command"):
        st.code(one.command, language="bash", wrap_lines=True)
    copy, file = st.columns(2)
    with copy:
        copy_button("copy.command", TEXTS("copy"), one.command)
    with file:
        if plan.is_gguf:
            st.caption(TEXTS("gguf"))
        elif plan.file.fit:
            configs.download(TEXTS("download"), plan.file.config, "whole", stretch=True)
    if one.is_checked is not False:
        st.caption(plain(one.proof))


def _memory(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show weights and cache as a bar against one GPU of a chosen size, and what makes them fit."""
    size = int(request[extend.GPU])
    memory = plan.memory
    if memory.cache is None:
        st.markdown(f"**{TEXTS('memory.title')}**  \n{words.unknown(plan)}")
        return
    fits = memory.count_gpus(size * 1e9) == 1
    st.markdown(f"**{TEXTS('memory.fits' if fits else 'memory.too_large', size=size)}**")
    whole = max(size * 1e9, memory.weights + memory.cached)
    parts = {"weights": memory.weights, "cache": memory.cached}
    bars = "".join(
        f'<i class="rv-{name}" style="width:{100 * value / whole:.2f}%"></i>' for name, value in parts.items()
    )
    limit = 100 * USED * size * 1e9 / whole
    weights, cached = human(memory.weights), human(memory.cached)
    label = TEXTS("memory.bar", weights=weights, cache=cached, size=size)
    # The label is moved back by its share of the line's place, so that it never leaves the bar.
    st.html(
        f'<div class="rv-memory" role="img" aria-label="{label}"><div>{bars}<b style="left:{limit:.2f}%"></b></div>'
        f'<div><span style="margin-left:{limit:.2f}%;transform:translateX(-{limit:.2f}%)">'
        f"{TEXTS('memory.limit', size=size)}</span></div>"
        f'<p><span class="rv-weights">{TEXTS("memory.weights", size=weights)}</span>'
        f'<span class="rv-cache">{TEXTS("memory.cache", count=memory.sequences, size=cached)}</span></p></div>'
    )
    st.markdown(join(TEXTS("memory.stored", stored=memory.stored), *describe_fit(memory, size * 1e9)))
    with popover(TEXTS("memory.change"), "memory"):
        page.controls(extend.GPU, extend.SEQUENCES, extend.DTYPE)
        st.markdown(words.memory(plan))


def _cost(plan: ExtensionPlan) -> None:
    """Say what the method costs short texts, and how well long texts were measured, where anything is known."""
    if costs := words.list_costs(plan):
        st.markdown("\n\n".join([f"**{TEXTS('cost')}**", *costs]))


def _details(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show the evidence in tabs; only the open one is computed."""
    shown = (_changes, _why, _runtime_tab, _training, _verify)
    labels = _label_tabs(request)
    st.session_state["choice.tab"] = labels[request[extend.TAB]]
    tabs = st.tabs(list(labels.values()), key="choice.tab", on_change=_open_tab, args=(labels,))
    for show_tab, tab in zip(shown, tabs, strict=True):
        if tab.open:
            with tab:
                show_tab(request, plan)


def _label_tabs(request: PictureRequest) -> dict[str, str]:
    """Return the labels of the tabs; that of the runtimes counts those that agree on the config of the answer."""
    is_new = extend.is_written(request)
    found = extend.compare_readers(request) if is_new else runtimes.answers(page.picture_request(runtimes.PAGE))
    if found.problem:
        return dict(extend.TABS)
    same, count = runtime_words.count_agreeing(found)
    return {**extend.TABS, "runtimes": TEXTS("tabs.agree", same=same, count=count)}


def _open_tab(labels: dict[str, str]) -> None:
    label = st.session_state["choice.tab"]
    name = next((name for name, each in labels.items() if each == label), "changes")
    state.set_param(extend.TAB.key, name, default="changes")


def _changes(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show the new config.json as a diff, or why the page offers no file, and how to configure each runtime."""
    if plan.file.fragment and not plan.is_gguf:
        changed = format_diff(plan.config, plan.file.config)
        st.code(changed, language="diff", wrap_lines=True, height=360 if changed.count("\n") > 20 else "content")
    if not plan.is_gguf:
        st.markdown(words.describe_support(plan))
    if not plan.file.fit:
        st.markdown(EXTEND("no_download", problem=plain(plan.file.findings[0].message)))
    if not plan.instructions and not plan.refused:
        st.markdown(EXTEND("no_runtime"))
    for one in plan.instructions:
        st.subheader(one.name, anchor=False)
        proof = plain_with_footnote(one.proof, one.made.known.source.rstrip("."))
        is_checked = is_made_from(one.proof, "proof.all", "proof.layers")
        st.markdown("**{}**{}{}".format(*split_at_colon(proof)) if is_checked else proof)
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
    if not extend.has_mixed_layers(request):
        page.paragraph(extend.describe_layers(request))
    page.controls(extend.TRAINED, extend.WAY)
    page.picture_sentence(extend.ways)
    page.show(extend.ways)
    for picture in (extend.speeds, extend.options, extend.memory):
        page.picture_sentence(picture)
        page.show(picture)
    page.section(TEXTS("vectors.heading"), says=extend.vectors)
    page.show(extend.vectors)
    page.legend(TEXTS("vectors.legend"))
    page.link("recall", TEXTS("recall"))
    page.explain("model/extend")


def _runtime_tab(request: PictureRequest, plan: ExtensionPlan) -> None:
    """Show what each runtime makes of the config to write, then of the config as it is."""
    if extend.is_written(request):
        page.picture_sentence(extend.readers)
        page.show(extend.readers)
        page.section(TEXTS("your_file"))
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
    answers = runtimes.answers(asked)
    if group_differing(answers):
        page.picture_sentence(runtimes.curves)
        page.show(runtimes.curves)
        page.legend(runtime_words.RUNTIMES("marks"))
    else:
        page.paragraph(runtime_words.agreement(answers))
    page.picture_sentence(runtimes.matrix)
    page.show(runtimes.matrix)
    page.paragraph(join(runtime_words.RUNTIMES("table"), runtime_words.counts()))
    if runtimes.several(asked):
        page.section(TEXTS("several"), says=runtimes.axes)
        page.show(runtimes.axes)
        page.link("axes", TEXTS("axes"))
    page.section(runtime_words.RUNTIMES("history.section"), says=runtimes.releases)
    page.show(runtimes.releases)
    page.legend(runtime_words.RUNTIMES("history.legend"))
    page.show(runtimes.spans)
    page.section(TEXTS("check"))
    configs.findings(runtimes.config_in_question(asked))
    _all_models()
    page.explain("model/runtimes")


def _all_models() -> None:
    page.section(TEXTS("all"))
    page.link("differences")


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
        warn(TRAINING("identify.refused", problem=remove_period(str(error))))
        return
    asked = runtimes.config_in_question(request)
    try:
        found = identify(values, asked.clean, asked.layer)
    except ValueError as error:
        warn(TRAINING("identify.uncompared", problem=remove_period(str(error))))
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
