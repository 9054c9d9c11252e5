"""Ranges and scales set by number stay in the page's link and reappear in the dialog."""

from urllib.parse import parse_qs, urlsplit

from tests.browser.figure_tools import customise

OPEN_DIALOG = "dialog.rv-export[data-state=shown]"
RANGES_KEY = "axes-frequencies-wavelengths"


def open_dialog(view):
    customise(view.scroll_to("frequencies/wavelengths"))
    return view.page.locator("dialog.rv-export")


def read_query(view):
    return parse_qs(urlsplit(view.page.url).query)


def test_typed_ranges_stay_in_the_link_with_the_servers_keys(visit):
    view = visit().open("/frequencies?base=77000")
    found = open_dialog(view)
    found.locator("[name=xmin]").fill("16")
    found.locator("[name=ymax]").fill("1e6")
    found.locator("[name=yscale]").select_option("linear")
    view.until(f"decodeURIComponent(location.search).includes('{RANGES_KEY}=xmin:16;ymax:1e6;yscale:linear')")
    view.page.keyboard.press("Escape")
    view.slider("head_dim").focus()
    view.page.keyboard.press("ArrowRight")
    view.until("location.search.includes('dim=130')")
    view.settle()
    assert read_query(view)[RANGES_KEY] == ["xmin:16;ymax:1e6;yscale:linear"]
    assert read_query(view)["base"] == ["77000"]

    other = visit().open(view.page.url.removeprefix(view.url))
    other.slider("head_dim").focus()
    other.page.keyboard.press("ArrowRight")
    other.until("location.search.includes('dim=132')")
    other.settle()
    found = open_dialog(other)
    other.page.wait_for_selector(OPEN_DIALOG)
    values = {name: found.locator(f"[name={name}]").input_value() for name in ("xmin", "xmax", "ymax", "yscale")}
    assert values == {"xmin": "16", "xmax": "", "ymax": "1e6", "yscale": "linear"}
    address = parse_qs(urlsplit(found.locator("[name=address]").input_value()).query)
    assert (address["xmin"], address["ymax"], address["yscale"]) == (["16"], ["1e6"], ["linear"])
    # Cleared ranges leave the link, although the server has read them.
    found.locator("[name=xmin]").fill("")
    found.locator("[name=ymax]").fill("")
    found.locator("[name=yscale]").select_option("")
    other.until("!location.search.includes('axes-')")
    other.page.keyboard.press("Escape")
    other.slider("head_dim").focus()
    other.page.keyboard.press("ArrowLeft")
    other.until("location.search.includes('dim=130')")
    other.settle()
    assert RANGES_KEY not in read_query(other)
    assert view.errors + other.errors == []


def test_axis_ranges_do_not_follow_to_another_page(visit):
    view = visit().open(f"/frequencies?base=77000&{RANGES_KEY}=xmin:16;yscale:nonsense;other:1;")
    view.go("Scaling")
    assert read_query(view) == {"base": ["77000"]}
    assert view.errors == []
