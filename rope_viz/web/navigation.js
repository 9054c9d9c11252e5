// The browser part of the frame: links inside the app stay in the tab and session, a banner reports a lost server, and the
// user's config and files are stored in the browser. It listens on the document, so it does not depend on any node.

import { addStyle, element } from "./element.js";
import { Outbox } from "./outbox.js";
import { text } from "./texts.js";
import { copyAndReport, makeMenu, placeBelow } from "./tools.js";
import { WORDS } from "./words.js";

const root = new URL("../../", import.meta.url);
const outbox = new Outbox();
let component = null;

// Find the app's page that an address names, with the URL; null for any other address.
function findPage(address) {
  const url = new URL(address, location.href);
  if (url.origin !== location.origin || url.hash && url.pathname === location.pathname && url.search === location.search) return null;
  // Texts link to /rotation even if the app is below a base path.
  const path = url.pathname.startsWith(root.pathname) ? url.pathname.slice(root.pathname.length) : url.pathname.slice(1);
  const page = path.replace(/\/$/, "") || component.data.first;
  return component.data.pages.includes(page) ? { page, url } : null;
}

// Complete the link's address, so that it also works in a new tab, with the same choice.
function completeLink(anchor) {
  const found = findPage(anchor.href);
  if (!found || anchor.closest('[data-testid="stPageLink"]')) return;
  const { page, url } = found;
  // A link of the header carries the current choice; the query that header.js gave it may be older.
  const own = "to" in anchor.dataset ? "" : url.search;
  // What a card of the gallery opens on its page, besides the choice.
  const opens = anchor.dataset.opens;
  const query = new URLSearchParams((opens === undefined && own) || component.data.query);
  for (const [key, value] of new URLSearchParams(opens)) query.set(key, value);
  const to = new URL(page === component.data.first ? "" : page, root);
  to.search = query.toString();
  to.hash = url.hash;
  if (anchor.dataset.inside !== to.href || anchor.href !== to.href || anchor.target) {
    Object.assign(anchor.dataset, { inside: to.href, page, query: opens ? `?${query}` : own, anchor: url.hash });
    anchor.href = to.href;
    anchor.removeAttribute("target");
  }
}

const completeLinks = () => document.querySelectorAll("#rv-header a[href]:not([data-language]), main a[href], [data-testid=stSidebar] a[href]").forEach(completeLink);

// Capture the click before the page's own handlers.
document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[data-inside]");
  if (!anchor || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const { page, query } = anchor.dataset;
  outbox.send("open", { page, query: Object.fromEntries(new URLSearchParams(query)) });
}, true);

// --- Glossary terms, the help of a slider and footnotes: one sentence, or the source, in a note

const TERM = 'a[href^="#word-"]', NOTE = 'a[href="#source"], a[href="#help"]';
let opened = null, hovered = null;

function closeNote(returnsFocus) {
  document.querySelector(".rv-sentence")?.remove();
  if (returnsFocus) opened?.focus();
  opened = null;
}

function openNote(anchor, takesFocus = true) {
  const isOpen = opened === anchor;
  closeNote(false);
  const sentence = WORDS[anchor.hash.slice(1)], isNote = anchor.matches(NOTE);
  if (!(sentence || isNote) || isOpen) return;
  opened = anchor;
  const note = element("div", { className: "rv-sentence", role: "note", innerHTML: sentence ?? "", tabIndex: -1 });
  if (isNote) note.append(...linkAddresses(anchor.dataset.help ?? anchor.textContent));
  const style = getComputedStyle(document.querySelector('[data-testid="stApp"]'));
  Object.assign(note.style, { color: style.color, background: style.backgroundColor });
  document.body.append(note);
  placeNote(note);
  if (takesFocus) note.focus({ preventScroll: true });
}

// Turn the addresses in a source into links. Its text has word joiners, which keep Markdown from doing so (figures/words.py).
const linkAddresses = (source) => source.replaceAll("\u2060", "").split(/(https?:\/\/[^\s,;)]+)/).map((part, index) => (index % 2 ? element("a", { href: part, target: "_blank", rel: "noopener", textContent: part }) : part));

// Place the note at its term, also while the page scrolls; close it when the term leaves the view.
function placeNote(note) {
  const at = opened?.getBoundingClientRect();
  if (!at || at.bottom < 0 || at.top > innerHeight) return closeNote(false);
  placeBelow(note, at);
}

document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.(`${TERM}, ${NOTE}`);
  if (!anchor) return event.target.closest?.(".rv-sentence") ? undefined : closeNote(false);
  event.preventDefault();
  event.stopPropagation();
  // The mouse has already opened the note; the click keeps it open.
  if (anchor === hovered && opened === anchor) hovered = null;
  else openNote(anchor);
}, true);
// A mouse opens a note by resting on its sign. Touch and keys open it by a click.
document.addEventListener("pointerover", ({ target, pointerType }) => {
  const anchor = pointerType === "mouse" && target.closest?.(NOTE);
  if (anchor && opened !== anchor) {
    openNote(anchor, false);
    hovered = anchor;
  } else if (hovered && !anchor && !target.closest?.(".rv-sentence")) {
    if (opened === hovered) closeNote(false);
    hovered = null;
  }
}, true);
document.addEventListener("keydown", (event) => event.key === "Escape" && opened && closeNote(true));
document.addEventListener("scroll", () => opened && placeNote(document.querySelector(".rv-sentence")), true);

// --- Page change by keyboard: the focused element no longer exists, so focus the new page

let page = location.pathname, usesKeyboard = false;

addEventListener("keydown", () => (usesKeyboard = true), true);
addEventListener("pointerdown", () => (usesKeyboard = false), true);

function focusNewPage() {
  if (!usesKeyboard) page = location.pathname;
  if (page === location.pathname || document.activeElement !== document.body) return;
  const main = document.getElementById("stMain") ?? document.querySelector("main");
  page = location.pathname;
  if (main && !main.hasAttribute("tabindex")) main.tabIndex = -1;
  main?.focus({ preventScroll: true });
}

// --- The header's Share menu: the page's address, and the parameters

const listShares = () => Object.entries(component.data.share).map(([label, content]) => ({ name: content ? "parameters" : "link", label, act: () => copyAndReport(content ?? location.href, content ? undefined : "export.copy_link_refused") }));

// --- Lost server

let wasConnected = false, bannerTimer = 0;

function showBanner(name, sentence) {
  let note = document.querySelector(`.rv-banner[data-about=${name}]`);
  if (!sentence) return void note?.remove();
  if (!note) {
    note = element("div", { className: "rv-banner", role: "status" });
    note.dataset.about = name;
    document.body.append(note);
  }
  if (note.textContent !== sentence) note.textContent = sentence;
}

function showConnection() {
  const isConnected = document.querySelector('[data-testid="stApp"]')?.dataset.testConnectionState === "CONNECTED";
  if (isConnected) {
    clearTimeout(bannerTimer);
    showBanner("server", "");
    if (wasConnected && bannerTimer) {
      // Streamlit's client does not request a run after a reconnect, and a restarted server does not know the page's
      // widgets before the first run, so input would be lost.
      component.setTriggerValue("reconnected", Date.now());
      // Retry failed pictures.
      dispatchEvent(new Event("online"));
    }
    [wasConnected, bannerTimer] = [true, 0];
  } else if (wasConnected && !bannerTimer) {
    // A page that sleeps says so itself (inline/sleep.js).
    bannerTimer = setTimeout(() => document.getElementById("rv-asleep") || showBanner("server", text("banner.server")), 1000);
  }
}

// --- The user's own config: in this tab's storage, and in the browser's for new tabs

const CONFIG_KEY = "rope-viz.own";
const openStores = () => ["sessionStorage", "localStorage"].map((name) => {
  try {
    return window[name];
  } catch {
    return null; // the browser may forbid storage
  }
});

function storeConfig(config) {
  const done = openStores().map((store) => {
    try {
      if (store?.getItem(CONFIG_KEY) !== config) store.setItem(CONFIG_KEY, config);
      return true;
    } catch {
      store?.removeItem(CONFIG_KEY);
      return false;
    }
  });
  showBanner("own", done[0] ? "" : text("banner.config"));
}

function syncConfig({ own: config, forgotten }) {
  if (config) storeConfig(config);
  else if (forgotten) openStores().forEach((store) => store?.removeItem(CONFIG_KEY));
}

// --- The user's vectors and files, which no address can hold: in this tab's storage

const FILES_KEY = "rope-viz.held";

function readFiles() {
  try {
    return JSON.parse(openStores()[0]?.getItem(FILES_KEY)) ?? {};
  } catch {
    return {}; // not written by this app
  }
}

function storeFiles({ held: names, contents }) {
  const [tab] = openStores(), before = readFiles();
  const found = Object.entries(names).map(([key, name]) => [key, [name, contents[name] ?? (before[key]?.[0] === name && before[key][1])]]);
  const now = JSON.stringify(Object.fromEntries(found.filter(([, [, content]]) => content)));
  try {
    if (now !== JSON.stringify(before)) tab?.setItem(FILES_KEY, now);
  } catch {
    tab?.removeItem(FILES_KEY); // too large: after a reload the page reports that there is no file
  }
  if (Object.keys(contents).length) outbox.send("stored", Object.values(names));
}

// A new session (after a reload, in another tab, on another server) may not know what this browser stores, so repeat it
// until the server confirms. Send all at once: Streamlit may drop the first of two trigger values set in the same tick.
let restoredSession = "", retryTimer = 0;

function restoreSession(wait) {
  clearTimeout(retryTimer);
  const { session, restored, own: config, forgotten, held: names } = component.data, [tab, browser] = openStores().map((store) => store?.getItem(CONFIG_KEY));
  const storedConfig = !config && !forgotten && (tab || browser), lost = Object.entries(readFiles()).filter(([key]) => !(key in names));
  if (restored || (!storedConfig && !lost.length)) return (restoredSession = session);
  component.setTriggerValue("restore", { own: storedConfig && { text: storedConfig, tab: Boolean(tab) }, held: Object.fromEntries(lost.map(([key, [, content]]) => [key, content])) });
  retryTimer = setTimeout(() => restoreSession(2 * wait), wait);
}

addStyle(`
.rv-sentence {
  position: fixed; z-index: 1000000; max-width: min(380px, calc(100vw - 16px)); box-sizing: border-box; padding: 10px 14px; font: 15px/1.45 "Source Sans", sans-serif;
  overflow-wrap: anywhere; border: 1px solid #7A8490; border-radius: 8px; box-shadow: 0 4px 16px rgb(0 0 0 / 0.18);
}
.rv-sentence:focus { outline: none; }
.rv-banner {
  position: fixed; z-index: 1000000; left: 50%; bottom: 16px; transform: translateX(-50%); width: max-content; max-width: min(90vw, 720px); box-sizing: border-box; padding: 10px 16px;
  font: 15px/1.4 "Source Sans", sans-serif; color: #1B1F24; background: #FFF4D6; border: 1px solid #986000; border-radius: 8px;
}`);

export default function render(given) {
  const first = !component;
  component = outbox.component = given;
  outbox.confirm(given.data.confirmed);
  if (first) {
    const attributeFilter = ["href", "target", "data-test-connection-state"];
    new MutationObserver(() => (completeLinks(), showConnection(), focusNewPage())).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter });
  }
  window.ropeVizUpdateHeader?.(given.data.page, given.data.query);
  window.ropeVizUpdateChip?.(given.data.chip);
  const share = document.getElementById("rv-share");
  if (share && !share.hasChildNodes()) share.append(makeMenu("share", text("share.open"), listShares));
  // The query of links may have changed.
  document.querySelectorAll("a[data-inside]").forEach((anchor) => {
    const { page, query, anchor: hash } = anchor.dataset;
    anchor.href = new URL(`${page === given.data.first ? "" : page}${query}${hash}`, root).href;
  });
  completeLinks();
  showConnection();
  if (restoredSession !== given.data.session) restoreSession(3000);
  if (restoredSession === given.data.session) storeFiles(given.data);
  syncConfig(given.data);
  // Streamlit shows the first page for an unknown address.
  const requested = first ? (window.ropeVizRequested ?? "").slice(root.pathname.length).replace(/\/$/, "") : "";
  if (requested && !given.data.pages.includes(requested)) {
    showBanner("page", text("banner.page", { page: requested.slice(0, 40) }));
    setTimeout(() => showBanner("page", ""), 12000);
  }
}
