"""How exactly, and how fast, are q and k rotated for real?"""

from rope_viz.figures import kernels
from rope_viz.figures.words import kernels as words_kernels
from rope_viz.ui import choices, page, run, tables


@page.follow(page.start("Kernels"))
def errors(now: page.Now) -> page.Figure:
    """The errors by position."""
    figure = kernels.errors(now.spec, quick=now.live)
    return page.Figure(figure, "kernels.errors", words_kernels.ERRORS, sentence=words_kernels.errors(now.spec))


page.section("On this machine", words_kernels.BEFORE)
with page.row():
    pairing = choices.pick("Pairing", kernels.PAIRING_NAMES, "kernels.pairing")
    dtype = choices.pick("Dtype", kernels.DTYPES, "kernels.dtype")
    tokens = choices.pick("Tokens", kernels.TOKENS, "kernels.tokens")
    device = choices.pick("Device", kernels.DEVICES, "kernels.device")
    compiled = choices.switch("torch.compile", "kernels.compile", default=True, help=words_kernels.COMPILED)
workload = kernels.workload(pairing, dtype, tokens, device)
report = run.measurement("kernels", "Measure", workload, rounds=kernels.ROUNDS, compiled=compiled)
if report:
    page.say(words_kernels.measured(report))
    page.show(page.Figure(kernels.speeds(report), "kernels.speeds", words_kernels.SPEEDS))
    page.say(words_kernels.left_out(report))
    tables.table(kernels.ways_table(report), "ways", height=424)
    page.section("Pairings and backends agree", words_kernels.AGREEMENT)
    tables.table(kernels.agreement_table(report), "agreement")
    run.download(report, "Download the measurement", "rope-kernels")

page.explain("kernels")
page.section("Use it")
page.explain("kernels_code")
