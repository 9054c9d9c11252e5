"""The Attention page: a typed sentence, its position, and one cell shown in all four maps."""

from urllib.parse import quote

from playwright.sync_api import expect

MAPS = "document.querySelectorAll('.rv-plot')[0]"
ROWS = f"(n) => Array.from({MAPS}.data[n].z, (row) => Array.from(row))"


def read_rows(view, index):
    return view.page.evaluate(ROWS, index)


def test_hover_reads_all_maps_and_a_sentence_enters_the_link(visit):
    view = visit().open("/attention")
    tab = view.page
    box = tab.locator(".rv-plot").first.locator(".nsewdrag").nth(2).bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 3.5 / 12, box["y"] + box["height"] * 2.5 / 12)
    tab.mouse.move(box["x"] + box["width"] * 3.6 / 12, box["y"] + box["height"] * 2.5 / 12)
    marks = tab.locator(".rv-mark")
    expect(marks).to_have_count(3)
    shown = [float(text) for text in marks.all_inner_texts()]
    cells = [read_rows(view, index)[2][3] for index in (0, 1, 3)]
    assert all(abs(a - b) < 0.006 * abs(b) for a, b in zip(shown, cells, strict=True))
    tab.mouse.move(5, 5)
    expect(marks).to_have_count(0)

    field = view.page.get_by_role("textbox", name="Sentence", exact=True)
    field.fill("to be or not to be")
    field.press("Enter")
    view.until(f"{MAPS}.data[0].z.length === 6")
    view.page.wait_for_url(lambda url: "attention.sentence=to" in url)
    none = read_rows(view, 0)
    assert none[0] == none[4], "equal words must attend alike without position"
    assert read_rows(view, 2)[0] != read_rows(view, 2)[4]
    view.page.get_by_role("button", name="Options").click()
    view.page.locator("[data-testid=stCheckbox] label").first.click()
    view.page.wait_for_url("**attention.causal=**")
    view.go("Scaling")
    view.go("Attention")
    expect(view.page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value("to be or not to be")
    assert view.errors == []


def test_moving_the_sentence_changes_the_sinusoidal_map_only(visit):
    view = visit().open("/attention?attention.offset=0")
    before = [read_rows(view, index) for index in range(4)]
    view.page.get_by_role("button", name="Options").click()
    view.knob("offset").fill("1000000")
    view.knob("offset").press("Enter")
    view.page.wait_for_url("**attention.offset=1000000**")
    view.settle()
    change = [
        max(
            abs(a - b)
            for one, two in zip(old, read_rows(view, index), strict=True)
            for a, b in zip(one, two, strict=True)
        )
        for index, old in enumerate(before)
    ]
    assert change[0] == 0
    assert change[1] > 0.1
    assert max(change[2:]) < 1e-6

    # In a narrow window the maps are arranged two by two; in a wide one again in a row.
    view.resize(390, 844)
    view.until(f"{MAPS}._fullLayout.yaxis3.domain[1] < {MAPS}._fullLayout.yaxis.domain[0]")
    view.settle()
    domains = view.page.evaluate(
        f"['xaxis', 'xaxis2', 'xaxis3', 'yaxis', 'yaxis3'].map((a) => {MAPS}._fullLayout[a].domain)"
    )
    assert domains[0] == domains[2] != domains[1]
    assert domains[4][1] < domains[3][0]
    assert view.page.evaluate(f"{MAPS}.clientHeight") == 480
    view.resize(1440, 900)
    view.until(f"{MAPS}._fullLayout.yaxis3.domain[1] === {MAPS}._fullLayout.yaxis.domain[1]")
    view.settle()
    assert view.errors == []


def test_hostile_sentence_is_shown_as_plain_text(visit):
    words = '<img src=x onerror=alert(1)> <a href="https://elsewhere.example">x</a> [y](https://elsewhere.example) $z$'
    view = visit(watched=True).open(f"/attention?attention.sentence={quote(f'{words} {words}')}")
    tab = view.page
    assert tab.locator('[data-testid=stMain] a[href*="elsewhere"], .rv-plot a').count() == 0
    assert tab.locator("[data-testid=stMain] img[src=x]").count() == 0
    assert view.foreign_requests == []
    assert view.errors == []


def test_negative_weights_are_labelled_with_a_minus(visit):
    view = visit().open("/linear?model=llama-2-7b&attention.spacing=1000")
    view.scroll_to("attention/weights")
    drawn = view.page.locator("[data-picture='attention/weights'] .rv-plot").locator("text", has_text="−")
    assert drawn.count() > 20
