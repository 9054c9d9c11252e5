"""The Recall page: the curve follows the factor, and switched-off pairs cost recall."""

START = "/recall?model=rope-viz-reader&method=yarn&factor=4&target=1024"
PLOT = "document.querySelector('[data-picture=\"recall/{}\"] .rv-plot')"
LINE = "Array.from(" + PLOT + ".data.find((trace) => trace.name === '{}').y)"


def read_point(view, picture, name, index):
    return view.page.evaluate(LINE.format(picture, name) + f"[{index}]")


def test_recall_curve_follows_the_factor(visit):
    view = visit().open(START)
    before = read_point(view, "lengths", "YaRN", 4)
    assert before > 0.95
    view.page.locator("#rv-chip").click()  # the sidebar of the Lab is closed at first
    view.slider("factor").focus()
    view.page.keyboard.press("Home")  # a factor of 1 scales nothing
    view.page.wait_for_url(lambda address: "factor=4" not in address)
    view.settle()
    assert read_point(view, "lengths", "YaRN", 4) < before - 0.5
    assert view.errors == []


def test_switching_off_high_frequency_pairs_costs_recall(visit):
    view = visit().open(START)
    view.page.get_by_role("tab", name="Which pairs").click()
    view.page.wait_for_url("**recall.tab=pairs*")
    view.scroll_to("recall/switched")
    assert read_point(view, "switched", "as it is", 2) > 0.9
    view.page.get_by_role("radio", name="4 highest frequencies").click()
    view.page.wait_for_url("**recall.band=fast*")
    view.until(PLOT.format("switched") + ".data.some((trace) => trace.name === 'switched')")
    assert read_point(view, "switched", "switched", 2) < 0.3
    assert view.errors == []


def test_map_loads_in_parts(visit):
    view = visit().open(START + "&recall.length=4096&recall.tab=pairs")
    view.scroll_to("recall/needle")
    requests = view.page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    parts = [name for name in requests if "recall/needle.packed" in name]
    order = [next((part for part in ("part=1", "part=2") if part in name), "first") for name in parts]
    assert list(dict.fromkeys(order)) == ["first", "part=1", "part=2"]
    maps = PLOT.format("needle") + ".data.filter((trace) => trace.type === 'heatmap')"
    assert view.page.evaluate(f"{maps}.map(({{ name }}) => name)") == ["Without scaling", "YaRN"]
