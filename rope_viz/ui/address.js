// What one click of the reader does to the address is one step for Back; a page opens at its top, and Back finds it where
// it was left. It stands in the first page itself: Streamlit writes the address before any component has come.
(() => {
  const push = history.pushState, replace = history.replaceState, scrolled = new Map();
  const main = () => document.querySelector('[data-testid="stMain"]');
  // Where we are; what made this entry: "turn" (another page), "empty" or "query", or "past" where it was there before;
  // and whether the reader has done anything since.
  let at = location.href, made = "past", idle = true, follows = false, wanted = null, calm = 0;

  const leave = () => scrolled.set(at, main()?.scrollTop ?? 0);
  const does = () => ([idle, follows, wanted] = [false, false, null]);
  const path = (address) => new URL(address, location.href).pathname;

  // The ranges of pictures (export.js) are the browser's own: they stay when the server writes the rest of this page's address.
  const ranges = (search) => search.slice(1).split("&").filter((part) => part.startsWith("axes-"));
  const kept = (to) => {
    const next = new URL(to, location.href), own = next.pathname === location.pathname ? ranges(location.search) : [];
    if (own.length || ranges(next.search).length) {
      next.search = [...next.search.slice(1).split("&").filter((part) => part && !part.startsWith("axes-")), ...own].join("&");
    }
    return next.href;
  };

  // Another page comes in up to four writes: the old page's query goes, or becomes the new one's, the page comes, its query
  // comes. And after Back a run that was given up may still write.
  history.pushState = function (state, title, to) {
    const turns = path(to) !== location.pathname, kind = turns ? "turn" : new URL(to, location.href).search ? "query" : "empty";
    const same = idle && (made !== "query" || turns || follows);
    if (!idle) leave();
    (same ? replace : push).call(this, state, title, kept(to));
    if (made !== "past" || !idle) made = kind;
    [at, idle, follows] = [location.href, true, false];
    if (turns && wanted === null) main()?.scrollTo(0, 0);
  };
  history.replaceState = function (...entry) {
    replace.apply(this, entry);
    at = location.href;
  };

  for (const kind of ["pointerdown", "keydown", "click", "change", "drop", "wheel", "touchstart"]) {
    addEventListener(kind, does, { capture: true, passive: true });
  }

  // What a picture says next comes of what the reader did last: the dials, where another mode sets their hands.
  addEventListener("rope-viz-follows", () => (follows = true));

  addEventListener("popstate", () => {
    const other = path(at) !== location.pathname;
    leave();
    does();
    [at, made, idle] = [location.href, "past", true];
    if (!other) return;
    [wanted, calm] = [scrolled.get(at) ?? 0, 0];
    setTimeout(hold, 100, wanted, performance.now());
  }, true);

  // The page comes piece by piece, and is as high as it was with the last one: until it stood there for a second.
  const scroll = () => wanted !== null && main() && (main().scrollTop = wanted);
  const hold = (place, since) => {
    if (wanted !== place) return;
    scroll();
    const rests = document.querySelector('[data-test-script-state="notRunning"]') && performance.now() - since > 1000;
    calm = rests && Math.abs((main()?.scrollTop ?? 0) - place) < 2 ? calm + 1 : 0;
    if (calm > 10 || performance.now() - since > 15000) wanted = null;
    else setTimeout(hold, 100, place, since);
  };
  new MutationObserver(scroll).observe(document, { subtree: true, childList: true });

  // A reload finds the place as well: the browser keeps it only of what scrolls as a whole.
  const KEPT = "ropeVizPlace";
  addEventListener("pagehide", () => {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify([location.href, main()?.scrollTop ?? 0]));
    } catch {} // a browser may keep nothing
  });
  try {
    const [where, top] = JSON.parse(sessionStorage.getItem(KEPT)) ?? [];
    if (top && where === location.href && performance.getEntriesByType("navigation")[0]?.type === "reload") {
      wanted = top;
      setTimeout(hold, 100, top, performance.now());
    }
  } catch {}
})();
