"""Go through a page from its top to its end, by the wheel in three sizes of the window and by the keyboard in two."""

SIZES = ((1440, 900), (1280, 720), (390, 844))
"""The first is the one in which a visit begins. The second has the same layout with less room."""
PARTS = ("stMain", "stSidebarContent")
MOST_STOPS = 600
"""More than any page has, so that a Tab that goes round ends: each card of the gallery has five."""

SCRIPT = """
const find = (part) => document.querySelector(`[data-testid=${part}]`);
const visible = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getClientRects().length;
// A file input has no box of its own, and a switch has one of a pixel: what is around it has.
const box = (node) => {
  for (; node.parentElement; node = node.parentElement) {
    const found = node.getBoundingClientRect();
    if (found.width > 4 && found.height > 4) return found;
  }
  return node.getBoundingClientRect();
};
const name = (node) => `${node.tagName} ${node.getAttribute("aria-label") ?? node.textContent}`.trim().slice(0, 60);
// Bars that stay at the bottom edge.
const bars = () => [...document.querySelectorAll(".st-key-under, .rv-way")].filter((bar) => visible(bar)
  && getComputedStyle(bar).position === "fixed");
const low = () => Math.min(innerHeight, ...bars().map((bar) => bar.getBoundingClientRect().top));
const report = (node) => {
  const { top, bottom } = box(node);
  return `${name(node)}: ${Math.round(top)} to ${Math.round(bottom)}, window to ${Math.round(low())}`;
};
// By name: a sentence that changes replaces its links.
const visited = new Set();
const CONTENT = "h1, h2, p, li, a, button, input, textarea, summary, canvas, [role=slider], [tabindex='0']";

window.ends = {
  /* Return the middle of a part and its scroll position, or null where it is not shown. */
  place(part) {
    const node = find(part), { left, top, right, bottom } = node?.getBoundingClientRect() ?? {};
    if (!node || !visible(node) || right < 40) return null;
    return [(left + right) / 2, (top + Math.min(bottom, innerHeight)) / 2, node.scrollTop, node.scrollHeight];
  },
  /* List what begins above the top of a part (a negative direction) or ends below the window. */
  cut(part, direction) {
    const node = find(part), first = node.getBoundingClientRect().top;
    const own = [...node.querySelectorAll(CONTENT)].filter((each) => visible(each)
      && !bars().some((bar) => bar.contains(each)) && getComputedStyle(each).clipPath === "none"
      && !each.closest(".stMainBlockContainer [style*=overflow], .rv-scroll, .rv-diff, pre, .st-key-learn h1"));
    return own.filter((each) => direction < 0 ? box(each).top < first - 1 : box(each).bottom > low() + 1).map(report);
  },
  arrived(part, direction) {
    const { scrollTop, clientHeight, scrollHeight } = find(part);
    return direction < 0 ? scrollTop <= 0 : scrollTop + clientHeight >= scrollHeight - 1;
  },
  /* Wait until the wheel has brought a part to its end: it takes effect with a later frame. */
  async wheelArrived(part, direction) {
    for (let frame = 0; frame < 60 && !ends.arrived(part, direction); frame++) await new Promise(requestAnimationFrame);
  },
  /* Return the focused control, and what hides it once the page has followed; null after the last. */
  async focused() {
    for (let frame = 0; frame < 60 && ends.look()?.[1]; frame++) await new Promise(requestAnimationFrame);
    return ends.look();
  },
  look() {
    const node = document.activeElement;
    if (node === document.body) return null;
    visited.add(name(node));
    const { left, right, top, bottom } = box(node);
    const x = (Math.max(left, 0) + Math.min(right, innerWidth)) / 2;
    const y = (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2;
    const hit = document.elementFromPoint(x, y);
    const inside = bars().some((bar) => bar.contains(node)) || (top > -2 && bottom < low() + 2)
      || bottom - top > innerHeight / 2;
    const open = hit && (node.contains(hit) || hit.contains(node)
      || hit.closest("label, [data-testid^=st]")?.contains(node));
    return [name(node), inside && open ? "" : `${report(node)}, under ${hit?.outerHTML.slice(0, 80)}`];
  },
  /* List the controls of the page that no Tab has reached. A group of buttons is one stop, and has arrow keys. */
  missed: () => [...find("stMain").querySelectorAll("a[href], button, input, textarea, summary, [tabindex='0']")]
    .filter((node) => visible(node) && node.tabIndex >= 0 && !node.disabled && !visited.has(name(node))
      && !node.closest("[data-testid=stButtonGroup], [role=radiogroup], [inert]")).map(report),
  forget() {
    visited.clear();
    document.activeElement.blur();
    getSelection().removeAllRanges();
  },
};
"""


def place(view, part):
    return view.page.evaluate("(part) => ends.place(part)", part)


def turn_wheel(view, part, direction):
    """Turn the wheel over a part until it is at its end and all that came near has loaded.

    Two turns without effect end it too: a browser without a screen loses the first one after a change of the window.
    """
    before, idle_turns = place(view, part), 0
    view.page.mouse.move(*before[:2])
    while idle_turns < 2:
        view.page.mouse.wheel(0, direction * 20_000)
        view.page.evaluate("([part, direction]) => ends.wheelArrived(part, direction)", [part, direction])
        view.settle()
        if view.page.evaluate("([part, direction]) => ends.arrived(part, direction)", [part, direction]):
            break
        after = place(view, part)
        idle_turns = idle_turns + 1 if after == before else 0
        before = after
    view.page.mouse.move(1, 1)  # off the notes that open under a resting mouse
    return view.page.evaluate("([part, direction]) => ends.cut(part, direction)", [part, direction])


def press_tab_to_the_end(view):
    """Press Tab until the page has no further control; return the names, and the controls that were not to be seen."""
    names, hidden = [], []
    while len(names) < MOST_STOPS:
        view.page.keyboard.press("Tab")
        found = view.page.evaluate("ends.focused()")
        if found is None:
            return names, hidden
        names.append(found[0])
        hidden += filter(None, found[1:])
    raise AssertionError(f"no end after {names[-5:]}")


def load_ends(view):
    """Give the page the functions that `turn_wheel` calls."""
    view.page.evaluate(f"{{ {SCRIPT} }}")


def assert_ends_are_reached(view):
    load_ends(view)
    for picture in view.page.evaluate("[...document.querySelectorAll('.rv-picture')].map((at) => at.dataset.picture)"):
        view.scroll_to(picture)  # its sentence comes with it, and may have links
    for width, height in SIZES:
        view.resize(width, height)
        view.settle()
        for part in PARTS:
            if place(view, part):
                assert turn_wheel(view, part, 1) == [], f"{part} at {width}: below the end of the wheel"
                assert turn_wheel(view, part, -1) == [], f"{part} at {width}: above the start of the wheel"
        if (width, height) == SIZES[0]:
            continue
        view.page.evaluate("ends.forget()")
        names, hidden = press_tab_to_the_end(view)
        assert hidden == [], f"at {width}: focused, and not to be seen: {hidden}"
        assert view.page.evaluate("ends.missed()") == [], f"at {width}: no stop of Tab, which went by {names}"
        assert turn_wheel(view, "stMain", -1) == [], f"at {width}: above the start of the wheel, after Tab to the end"
