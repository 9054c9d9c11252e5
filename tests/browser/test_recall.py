"""The Recall page under a real mouse: the line follows the factor, and pairs switched off cost recall."""

from playwright.sync_api import expect

START = "/recall?model=rope-viz-reader&method=yarn&factor=4&target=1024"
PLOT = "document.querySelector('[data-picture=\"recall/{}\"] .rv-plot')"
LINE = "Array.from(" + PLOT + ".data.find((trace) => trace.name === '{}').y)"


def at(seen, picture, name, index):
    return seen.page.evaluate(LINE.format(picture, name) + f"[{index}]")


def test_the_line_follows_the_factor(visit):
    seen = visit().open(START)
    before = at(seen, "lengths", "YaRN", 4)
    assert before > 0.95
    seen.page.locator("#rv-chip").click()  # the Lab's sidebar is closed at first
    seen.slider("factor").focus()
    seen.page.keyboard.press("Home")  # all the way: a factor of 1 scales nothing
    seen.page.wait_for_url(lambda address: "factor=4" not in address)
    seen.settle()
    assert at(seen, "lengths", "YaRN", 4) < before - 0.5
    assert seen.errors == []


def test_switching_off_high_frequency_pairs_costs_recall(visit):
    seen = visit().open(START)
    seen.look("recall/switched")
    assert at(seen, "switched", "as it is", 2) > 0.9
    seen.page.get_by_role("radio", name="4 highest frequencies").click()
    seen.page.wait_for_url("**recall.band=fast*")
    seen.until(PLOT.format("switched") + ".data.some((trace) => trace.name === 'switched')")
    assert at(seen, "switched", "switched", 2) < 0.3
    assert seen.errors == []


def test_the_map_fills_in_part_by_part(visit):
    seen = visit().open(START + "&recall.length=4096")
    seen.look("recall/needle")
    asked = seen.page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    parts = [name for name in asked if "recall/needle.packed" in name]
    order = [next((part for part in ("part=1", "part=2") if part in name), "first") for name in parts]
    assert list(dict.fromkeys(order)) == ["first", "part=1", "part=2"]
    maps = PLOT.format("needle") + ".data.filter((trace) => trace.type === 'heatmap')"
    assert seen.page.evaluate(f"{maps}.map(({{ name }}) => name)") == ["Without scaling", "YaRN"]


def test_all_pairs_can_be_switched_to_no_rotation(visit):
    seen = visit().open(START + "&recall.band=all")
    seen.look("recall/switched")
    expect(seen.page.locator('[data-says="recall/switched"]')).to_contain_text("this is the first step of DroPE")
    assert seen.errors == []


def test_drope_is_not_named_while_some_pairs_rotate(visit):
    seen = visit().open(START + "&recall.band=slow")
    seen.look("recall/switched")
    expect(seen.page.locator('[data-says="recall/switched"]')).to_contain_text("at zero frequency")
    assert seen.page.get_by_text("DroPE").count() == 0
