// One click of the user makes one step for the Back button. A page opens at its top, and Back restores its scroll position.
// This is part of the first page, because Streamlit writes the address before any component has loaded.
(() => {
  const push = history.pushState, replace = history.replaceState, scrolled = new Map();
  const main = () => document.querySelector('[data-testid="stMain"]');
  // The current address; what made its entry: "turn" (another page), "empty" or "query" (a write without or with a query),
  // or "past" (an earlier entry); and whether the user has done nothing since.
  let at = location.href, made = "past", idle = true, follows = false, wanted = null, calm = 0;

  const leave = () => scrolled.set(at, main()?.scrollTop ?? 0);
  const does = () => ([idle, follows, wanted] = [false, false, null]);
  const path = (address) => new URL(address, location.href).pathname;

  // The ranges of pictures (export.js) belong to the browser: keep them when the server rewrites this page's query.
  const ranges = (search) => search.slice(1).split("&").filter((part) => part.startsWith("axes-"));
  const kept = (to) => {
    const next = new URL(to, location.href), own = next.pathname === location.pathname ? ranges(location.search) : [];
    if (own.length || ranges(next.search).length) {
      next.search = [...next.search.slice(1).split("&").filter((part) => part && !part.startsWith("axes-")), ...own].join("&");
    }
    return next.href;
  };

  // A change of page takes up to four writes: the old page's query is removed or replaced, the page changes, its query
  // follows. After Back, an aborted run may still write.
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

  // The next write by a picture belongs to the user's last action, for example when another mode resets the dials.
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

  // The page loads piece by piece: keep restoring the scroll position until it has held for a second.
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

  // Restore it after a reload too: the browser remembers the position only for a document that scrolls as a whole.
  const KEPT = "ropeVizPlace";
  addEventListener("pagehide", () => {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify([location.href, main()?.scrollTop ?? 0]));
    } catch {} // the browser may forbid storage
  });
  try {
    const [where, top] = JSON.parse(sessionStorage.getItem(KEPT)) ?? [];
    if (top && where === location.href && performance.getEntriesByType("navigation")[0]?.type === "reload") {
      wanted = top;
      setTimeout(hold, 100, top, performance.now());
    }
  } catch {}
})();
