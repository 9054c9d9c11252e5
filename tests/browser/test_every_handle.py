"""Every handle that our scripts draw is operated once by the keyboard and has an effect.

Streamlit's widgets are operated in tests/pages/test_every_control.py. The handles here are the buttons, fields, sliders
and canvases of knobs, charts, dials, tables, bars, prompts and the dialog. They are found in the page: one that is
missing in `HANDLES`, is never found or has no effect fails. test_every_page.py checks that no page has others.
"""

import contextlib

import pytest
from playwright.sync_api import TimeoutError

from tests.browser.conftest import IS_SETTLED, LIMIT

FILES = "png svg pdf html csv json"
SHARES = "page picture embed command python notebook"
TOOLS = f"more download {FILES} customise share {SHARES} full screen present"

# Entry of a figure's menu -> the button that opens the menu.
MENUS = dict.fromkeys((*FILES.split(), "video"), "download") | dict.fromkeys(
    (*SHARES.split(), "link", "parameters", "record"), "share"
)
MENUS |= dict.fromkeys(("screen", "present"), "full")
MENUS["asks"] = "answer"  # a scene moves after the prediction

PHONE = "/decay"
"""The page that is opened at a phone's width."""

# Component -> its handles, by their name in the script, else their label, else their kind.
HANDLES = {
    "header": "theme chip share link parameters",
    "knob": "text range",
    "pills": "pill",
    "copy": "Copy-command",
    "gallery": "door search Address Embed Command Python",
    "chart": f"figure {TOOLS} reset",
    "table": f"head search {TOOLS}",
    "grid": f"cell {TOOLS.removeprefix('more ')}",
    "clocks": f"figure play less scrub at both m n speed back loop video {TOOLS}",
    "patch": f"figure Row Column {TOOLS}",
    "learn": "step answer asks at video embed back next restart sheet save",
    "hands": "query key ruler play one few all share embed notebook record",
    "sections": "border",
    "prompt": "kind 1 -1 remove tokens width height seconds rate Add-text Add-image Add-video Add-audio Prompt",
    "export": "preset width height dpi font font_size title theme grey legend xtitle ytitle "
    f"xmin xmax xscale ymin ymax yscale label colour hide {FILES} Copy-address Copy-command Reset Close",
}
ALL = {f"{component} {name}" for component, names in HANDLES.items() for name in names.split()}

# {address: components or single handles to operate there}; together they have every handle.
PLACES = {
    "/": {"hands"},
    "/learn": {"learn"},
    "/learn?learn.scene=8": {"learn sheet", "learn save"},
    "/scaling": {"knob", "chart", "export", "header theme", "header share", "header link", "header parameters"},
    "/rotation?rotation.show=score&rotation.at=2000,1500": {"clocks"},
    "/axes?axes.model=qwen2.5-omni-7b": {"patch", "sections", "prompt"},
    "/model?extend.tab=runtimes": {"table", "copy Copy-command"},
    "/differences": {"grid"},
    "/pairings": {"header chip"},
    "/frequencies": {"table search"},
    "/gallery": {"gallery"},
    PHONE: {"pills", "chart more"},
}
SINGLE_HANDLES = {"chart more", "table search", "learn sheet", "learn save"}
"""Handles that are not on the page with the rest of their component."""

# [element, its name in HANDLES] of all handles that can be operated now.
FIND = """() => {
  const ours = '[class^="rv-"], [class*=" rv-"]', dialog = document.querySelector('dialog[open]');
  const names = ['export', 'knob', 'pills', 'copy', 'gallery', 'picture', 'sections', 'prompt'];
  const roots = names.map((name) => `.rv-${name}`);
  const shown = (at) => at.checkVisibility({ visibilityProperty: true }) && at.getBoundingClientRect().left >= 0
    && !at.closest('details:not([open])');
  const able = (at) => !at.disabled && !at.readOnly && !at.closest('[inert]') && at.role !== 'region';
  const named = (at, component) => {
    const { dataset, type } = at, own = ['item', 'do', 'zoom', 'save', 'field', 'move'].find((key) => key in dataset);
    if (component === 'header') return at.id.slice(3) || dataset.item || dataset.do;
    if (component === 'pills') return 'pill';
    if (component === 'knob') return type;
    if (component === 'sections') return 'border';
    if (at.closest('th')) return 'head';
    if (at.matches('[role=gridcell]')) return 'cell';
    if (at.matches('canvas, .rv-plot')) return 'figure';
    if (at.name) return /^(label|colour|hide)[.]/.exec(at.name)?.[1] ?? at.name;
    if (own || 'remove' in dataset) return own ? dataset[own] : 'remove';
    if (component === 'prompt' && at.matches('select')) return 'kind';
    return type === 'search' ? type
      : at.getAttribute('aria-label') || at.innerText || at.closest('label')?.innerText || at.outerHTML;
  };
  return [...(dialog ?? document).querySelectorAll('button, input, select, textarea, [tabindex="0"]')]
    .filter((at) => at.closest(ours) && able(at) && shown(at)).map((at) => {
      const root = roots.map((each) => at.closest(each)).find(Boolean) ?? at.closest(ours);
      const own = [...root.classList].pop().slice(3);
      const component = at.closest('#rv-header, #rv-chip') ? 'header' : own;
      return [at, `${component} ${named(at, component).trim().replaceAll(' ', '-')}`];
    });
}"""
NAMES = f"() => ({FIND})().map(([, name]) => name)"
FIRST = f"(name) => ({FIND})().find(([, each]) => each === name)[0]"

# The value typed into a field; all others get 7, or 5 if they have 7.
FIELD_VALUES = {
    "width": "90mm",
    "height": "60mm",
    "dpi": "200",
    "font": "serif",
    "font_size": "9pt",
    "xmax": "50",
    "ymin": "0.2",
    "ymax": "1.2",
}

# Count the changes of the page; a settled page has none.
COUNT_CHANGES = """() => {
  window.__watch?.disconnect();
  window.__changes = 0;
  window.__watch = new MutationObserver((changes) => (window.__changes += changes.length));
  window.__watch.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
}"""
PICTURE_STATES = "[...document.querySelectorAll('.rv-picture')].map(({ dataset }) => [dataset.picture, dataset.state])"
SHOWS_COPIED = (
    "[...document.querySelectorAll('button')].some((at) => at.checkVisibility() && /^Copied/.test(at.innerText))"
)
IS_UNCHANGED = "() => { const count = window.__changes; window.__changes = 0; return count === 0; }"


def operate(page, handle):
    """Operate a handle. Buttons by key: a mouse that leaves a chart would change that chart."""
    kind = handle.evaluate("(at) => (at.matches('th') ? 'button' : at.type ?? 'figure')")
    if kind == "select-one":
        handle.evaluate("(at) => (at.selectedIndex = (at.selectedIndex + 1) % at.length)")
        handle.dispatch_event("input")
        handle.dispatch_event("change")
    elif kind == "color":
        handle.fill("#123456")
    elif kind == "checkbox":
        page.keyboard.press("Space")
    elif kind in ("text", "search"):
        page.keyboard.press("Control+A")
        usual = "7" if handle.input_value() != "7" else "5"
        page.keyboard.type(FIELD_VALUES.get(handle.get_attribute("name"), usual))
        page.keyboard.press("Enter")
    elif kind == "button":
        page.keyboard.press("Enter")
    else:
        last = kind == "range" and handle.evaluate("(at) => at.value === at.max")
        page.keyboard.press("ArrowLeft" if last else "ArrowRight")


def has_effect(view, handle, name="", seconds=LIMIT):
    """Operate a handle and return True if it changed the page or, for a file, started a download; then undo it."""
    page = view.page
    handle.focus()
    page.evaluate(COUNT_CHANGES)
    assert view.becomes_true(IS_UNCHANGED, 1, LIMIT), "the page is not settled"
    if name.split(" ")[-1] in FILES.split():
        with page.expect_download(timeout=1000 * seconds):
            operate(page, handle)
        changed = True
    else:
        operate(page, handle)
        changed = view.becomes_true("() => window.__changes || document.fullscreenElement", 1, seconds)
    presents = name.endswith(" present")
    if presents:
        page.wait_for_url("**present=**")
    page.evaluate("document.fullscreenElement && document.exitFullscreen()")
    if presents:  # leaving full screen may have ended the presentation already
        with contextlib.suppress(TimeoutError):
            page.locator(".rv-present [data-do=close]").click(timeout=5000)
        page.wait_for_url(lambda url: "present=" not in url)
    if (stop := page.get_by_role("button", name="Stop and save")).count():
        stop.click()
        if (
            play := page.locator(":is(.rv-clocks, .rv-hands) [data-do=play]")
        ).count():  # scenes of Learn have no play button
            play.click()
    assert view.becomes_true(IS_SETTLED, 1, LIMIT), "the page did not come to rest"
    view.until(f"!{SHOWS_COPIED}")  # shown for a second; its end is no effect of the next handle
    if not view.becomes_true(IS_UNCHANGED, 2, 3) and handle.is_visible():
        handle.press("Enter")
    return changed


def test_addresses_together_have_every_handle():
    assert set().union(*map(list_handles, PLACES.values())) == ALL


def list_handles(components):
    """Return the full names of the handles of components, or of single handles."""
    return {
        name for name in ALL if name in components or (name.split()[0] in components and name not in SINGLE_HANDLES)
    }


@pytest.mark.parametrize(("address", "components"), PLACES.items())
def test_every_handle_has_an_effect(visit, address, components):
    size = {"width": 390, "height": 844} if address == PHONE else {}
    view = visit(permissions=["clipboard-read", "clipboard-write"], **size).open(address)
    page, remaining = view.page, list_handles(components)
    for name, _ in page.evaluate(PICTURE_STATES):
        view.scroll_to(name)
    while remaining:
        present = page.evaluate(NAMES)
        assert set(present) <= ALL
        name = min(
            remaining & set(present), key=lambda each: (each == "export Close", present.index(each)), default=None
        )
        if name is None:
            component, entry = min(remaining).split(" ")
            if entry == "reset":  # shown after a zoom
                page.locator(".rv-plot").first.press("+")
                view.until("document.querySelector('[data-zoom=reset]').checkVisibility()")
                continue
            if component == "prompt":  # a card shows its buttons while focused
                page.locator(".rv-prompt li").nth(1).focus()
                continue
            if component == "gallery":  # cards that match the search do so too
                page.locator(".rv-gallery input[type=search]").fill("")
                page.locator(".rv-gallery li:visible a").first.focus()
                continue
            name = f"{component} {MENUS.get(entry)}"
            assert name in present, f"never found: {remaining}, with {page.evaluate(PICTURE_STATES)}"
        handle = page.evaluate_handle(FIRST, name).as_element()
        assert has_effect(view, handle, name), f"{name}: no effect"
        remaining.discard(name)
        if page.locator("dialog[open]").count() and "export" not in components:
            page.keyboard.press("Escape")
    assert view.errors == []


def test_handle_without_effect_is_detected(visit):
    view = visit().open("/scaling")
    view.page.evaluate("document.querySelector('.rv-picture').append(document.createElement('button'))")
    handle = view.page.locator(".rv-picture > button").element_handle()
    assert not has_effect(view, handle, seconds=2)
