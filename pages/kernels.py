"""How exactly, and how fast, are q and k rotated for real?"""

from rope_viz.figures import kernels, words_kernels
from rope_viz.ui import choices, page, run, tables


@page.follow
def picture() -> None:
    """The sentence and the errors by position."""
    spec = page.head("Kernels", words_kernels.errors(page.spec()))
    page.show(kernels.errors(spec, quick=page.live()), "kernels.errors", words_kernels.ERRORS)


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
    page.show(kernels.speeds(report), "kernels.speeds", words_kernels.SPEEDS)
    page.say(words_kernels.left_out(report))
    tables.table(kernels.ways_table(report), "ways", height=424)
    page.section("Pairings and backends agree", words_kernels.AGREEMENT)
    tables.table(kernels.agreement_table(report), "agreement")
    run.download(report, "Download the measurement", "rope-kernels")

page.explain("kernels")
page.section("Use it")
page.explain("kernels_code")
