"""The page Extend: how to give a model a longer context, and how to verify it."""

from rope_viz.figures.words import extend as words
from rope_viz.pictures import extend
from rope_viz.ui import extend_sections, page

page.start("Extend", words.INTRO)
now = page.now(extend.PAGE)

if extend.problem(now):
    page.paragraph(extend.problem(now))
else:
    page.section("1 · What you have")
    extend_sections.have(extend.answer(now))
    page.controls(extend.TRAINED)

    page.section("2 · What you need")
    with page.row():
        page.controls(extend.TARGET, extend.SEQUENCES, extend.DTYPE)
    page.controls(extend.RUNTIMES)

    page.section("3 · What to do, and why", says=extend.ways)
    page.show(extend.ways)
    page.controls(extend.WAY)
    page.picture_sentence(extend.speeds)
    page.show(extend.speeds)
    page.picture_sentence(extend.options)
    page.show(extend.options)
    page.paragraph(words.short(extend.answer(now)))
    page.link("recall", "What a small trained model still finds with each method: Recall")
    page.picture_sentence(extend.memory)
    page.show(extend.memory)

    page.section("4 · What to write")
    extend_sections.file(extend.answer(now))
    extend_sections.runtimes(extend.answer(now))

    page.section("5 · Verify it worked")
    extend_sections.checks(extend.answer(now))
page.explain("extend")
