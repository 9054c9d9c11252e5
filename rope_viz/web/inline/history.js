// One click of the user makes one step for the Back button. A page opens at its top, and Back restores its scroll position.
// This is part of the first page, because Streamlit writes the address before any component has loaded.
(() => {
  const push = history.pushState, replace = history.replaceState, scrolled = new Map();
  const findMain = () => document.querySelector('[data-testid="stMain"]');
  // The current address; what wrote its entry: "turn" (another page), "empty" or "query" (a write without or with a query),
  // or "past" (an earlier entry); and whether the user has done nothing since.
  let current = location.href, entryKind = "past", isIdle = true, isSameAction = false, target = null, stableChecks = 0;

  const storeScroll = () => scrolled.set(current, findMain()?.scrollTop ?? 0);
  const recordAction = () => ([isIdle, isSameAction, target] = [false, false, null]);
  const readPath = (address) => new URL(address, location.href).pathname;

  // The ranges of pictures (export.js) belong to the browser: add them when the server rewrites this page's query.
  const listRanges = (search) => search.slice(1).split("&").filter((part) => part.startsWith("axes-"));
  const withRanges = (to) => {
    const next = new URL(to, location.href), own = next.pathname === location.pathname ? listRanges(location.search) : [];
    if (own.length || listRanges(next.search).length) {
      next.search = [...next.search.slice(1).split("&").filter((part) => part && !part.startsWith("axes-")), ...own].join("&");
    }
    return next.href;
  };

  // A change of page takes up to four writes: the old page's query is removed or replaced, the page changes, its query
  // follows. After Back, an aborted run may still write.
  history.pushState = function (state, title, to) {
    const changesPage = readPath(to) !== location.pathname, kind = changesPage ? "turn" : new URL(to, location.href).search ? "query" : "empty";
    const isSameStep = isIdle && (entryKind !== "query" || changesPage || isSameAction);
    if (!isIdle) storeScroll();
    (isSameStep ? replace : push).call(this, state, title, withRanges(to));
    if (entryKind !== "past" || !isIdle) entryKind = kind;
    [current, isIdle, isSameAction] = [location.href, true, false];
    if (changesPage && target === null) findMain()?.scrollTo(0, 0);
  };
  history.replaceState = function (...entry) {
    replace.apply(this, entry);
    current = location.href;
  };

  for (const kind of ["pointerdown", "keydown", "click", "change", "drop", "wheel", "touchstart"]) {
    addEventListener(kind, recordAction, { capture: true, passive: true });
  }

  // The next write by a picture belongs to the user's last action, for example when another mode resets the dials.
  addEventListener("rope-viz-same-step", () => (isSameAction = true));

  addEventListener("popstate", () => {
    const isOtherPage = readPath(current) !== location.pathname;
    storeScroll();
    recordAction();
    [current, entryKind, isIdle] = [location.href, "past", true];
    if (!isOtherPage) return;
    [target, stableChecks] = [scrolled.get(current) ?? 0, 0];
    setTimeout(holdScroll, 100, target, performance.now());
  }, true);

  // The page loads piece by piece: keep restoring the scroll position until it has held for a second.
  const restoreScroll = () => target !== null && findMain() && (findMain().scrollTop = target);
  const holdScroll = (place, since) => {
    if (target !== place) return;
    restoreScroll();
    const isAtRest = document.querySelector('[data-test-script-state="notRunning"]') && performance.now() - since > 1000;
    stableChecks = isAtRest && Math.abs((findMain()?.scrollTop ?? 0) - place) < 2 ? stableChecks + 1 : 0;
    if (stableChecks > 10 || performance.now() - since > 15000) target = null;
    else setTimeout(holdScroll, 100, place, since);
  };
  new MutationObserver(restoreScroll).observe(document, { subtree: true, childList: true });

  // Restore it after a reload too: the browser remembers the position only for a document that scrolls as a whole.
  const KEY = "ropeVizPlace";
  addEventListener("pagehide", () => {
    try {
      sessionStorage.setItem(KEY, JSON.stringify([location.href, findMain()?.scrollTop ?? 0]));
    } catch {} // the browser may forbid storage
  });
  try {
    const [where, top] = JSON.parse(sessionStorage.getItem(KEY)) ?? [];
    if (top && where === location.href && performance.getEntriesByType("navigation")[0]?.type === "reload") {
      target = top;
      setTimeout(holdScroll, 100, top, performance.now());
    }
  } catch {}
})();
