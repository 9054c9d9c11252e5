// The tools of a figure: Download, Customise, Share and full screen. The page's first figure shows them, every other one
// behind one button. Also the copy button.

import { addStyle, element, escapeHtml } from "./element.js";
import { loadScript } from "./message.js";
import { text } from "./texts.js";

const ICONS = {
  download: "M12 4v10m0 0-4-4m4 4 4-4M5 19h14",
  customise: "M4 8h9m5 0h2M4 16h3m5 0h8M15.5 5.5v5M9.5 13.5v5",
  share: "M12 14V4m0 0L8 8m4-4 4 4M6 12v7h12v-7",
  full: "M9 4H4v5m11-5h5v5M4 15v5h5m11-5v5h-5",
  more: "M5 12h.01M12 12h.01M19 12h.01",
};
const drawIcon = (name) => `<svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true"><path d="${ICONS[name]}" fill="none" stroke="currentColor" stroke-width="${name === "more" ? 3 : 2}" stroke-linecap="round" stroke-linejoin="round"/></svg>`;

function makeButton(name, label, act, { help = "", iconOnly = false } = {}) {
  const node = element("button", { type: "button", title: help, ariaLabel: label, innerHTML: `${drawIcon(name)}<span></span>` });
  node.dataset.do = name;
  if (iconOnly) Object.assign(node, { title: help || label }).lastChild.remove();
  else node.lastChild.textContent = label;
  node.addEventListener("click", act);
  return node;
}

// Load a script on first use and run it. If it or its request fails, show `<what>_failed` with a retry button.
export async function runScript(place, what, script, run) {
  const retry = () => runScript(place, what, script, run);
  try {
    place.showFailure(await run(await loadScript(script)), retry);
  } catch (error) {
    // A failed fetch is a TypeError.
    const reason = error instanceof TypeError ? text("picture.server_silent") : error.message;
    place.showFailure(text(`picture.${what}_failed`, { reason }), retry);
  }
}

const saveFile = (place, form) => runScript(place, "file", "export", ({ downloadFile, readRanges }) => downloadFile(place, form, readRanges(place)));

// Place a node of the top layer below a box of the page, or above it where the window ends.
export function placeBelow({ style, offsetWidth, offsetHeight }, { left, top, bottom }) {
  style.left = `${Math.max(8, Math.min(left, innerWidth - offsetWidth - 8))}px`;
  style.top = `${bottom + 4 + offsetHeight > innerHeight - 8 ? Math.max(8, top - offsetHeight - 4) : bottom + 4}px`;
}

// A button with a menu. `entries` returns [{ name, label, help, act }] each time the menu opens; `act` may return the text
// to show for a moment.
export function makeMenu(name, label, entries, options = {}) {
  const list = element("div", { className: "rv-menu", popover: "auto", role: "menu", ariaLabel: label });
  const opener = makeButton(name, label, () => list.togglePopover(), options);
  Object.assign(opener, { ariaHasPopup: "menu", ariaExpanded: "false" });
  list.addEventListener("beforetoggle", ({ newState }) => {
    opener.ariaExpanded = String(newState === "open");
    if (newState === "open") list.replaceChildren(...entries().map((entry) => makeItem(list, entry)));
  });
  list.addEventListener("toggle", ({ newState }) => {
    if (newState !== "open") return;
    placeBelow(list, opener.getBoundingClientRect());
    list.firstChild?.focus({ preventScroll: true });
  });
  list.addEventListener("keydown", (event) => {
    const items = [...list.children], now = items.indexOf(document.activeElement);
    const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === "Escape") opener.focus();
    if (next === undefined) return;
    event.preventDefault();
    items[(next + items.length) % items.length].focus();
  });
  // The page may scroll below an open menu. The event of a scroll before the click may also arrive late.
  addEventListener("scroll", () => {
    if (!list.matches(":popover-open")) return;
    const { top, bottom } = opener.getBoundingClientRect();
    if (bottom < 0 || top > innerHeight) list.hidePopover();
    else placeBelow(list, opener.getBoundingClientRect());
  }, true);
  const both = document.createDocumentFragment();
  both.append(opener, list);
  return both;
}

function makeItem(list, { name, label, help, act }) {
  const node = element("button", { type: "button", tabIndex: -1, role: "menuitem" }, element("b", { textContent: label }), element("small", { textContent: help ?? "" }));
  node.dataset.item = name;
  node.addEventListener("click", async () => {
    const outcome = await act();
    if (!outcome) return list.hidePopover();
    node.firstChild.textContent = outcome;
    setTimeout(() => list.matches(":popover-open") && list.hidePopover(), 1200);
  });
  return node;
}

const FORMS = ["png", "svg", "pdf", "html", "csv", "json"];
const describeFile = (place, form) => ({ name: form, label: form.toUpperCase(), help: text(`export.formats.${form}`), act: () => void saveFile(place, form) });

export const copyAndReport = async (content, refusal = "export.copy_refused") => text((await copyText(content)) ? "export.copied" : refusal);

// Make the command that writes the file of an address.
export function makeCommand({ data: { picture } }, address, form) {
  const query = new URLSearchParams(new URL(address).search);
  // Only the user has the config's file; "file" means that the numbers in the address are changes to it.
  if (query.has("config")) {
    query.delete("config");
    query.set("own", "file");
  }
  // Readable: within quotes a shell takes all signs but a quote as they are.
  const write = (part) => part.replace(/[%&+#'\s]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
  const own = query.has("own"), search = query.size ? `?${[...query].map((pair) => pair.map(write).join("=")).join("&")}` : "";
  const line = `rope-viz figure '${picture}${search}'${own ? " config.json" : ""} -o ${picture.replace("/", "-")}.${form}`;
  return own ? `# ${text("export.save_config")}\n${line}` : line;
}

const quoteName = ({ data: { picture } }, address) => JSON.stringify(picture + new URL(address).search);

// Make the cell of a notebook that shows the picture of an address.
export const makeCell = (place, address) => `%pip install --quiet 'rope-viz[widget]'\n\nfrom rope_viz.widgets import show\n\nshow(${quoteName(place, address)})\n`;

function listShares(place) {
  const address = place.makeAddress("svg", {}, true), { picture } = place.data, name = picture.replace("/", "-");
  const title = escapeHtml(place.message?.title ?? "");
  const all = {
    page: location.href,
    picture: address,
    embed: `<img src="${address.replaceAll("&", "&amp;")}" alt="${title}">`,
    command: makeCommand(place, address, "svg"),
    python: `from rope_viz.reports.draw import figure\n\nwith open("${name}.svg", "wb") as file:\n    file.write(figure(${quoteName(place, address)}))\n`,
    notebook: makeCell(place, address),
  };
  return Object.entries(all).map(([each, content]) => ({ name: each, label: text(`share.${each}`), help: text(`share.${each}_help`), act: () => copyAndReport(content) }));
}

// List the ways to show a figure alone: full screen, redrawn for the new size, or presented, by a run that shows nothing else.
function listScreens(place) {
  const [, name] = place.data.picture.split("/");
  const fillScreen = () => (document.fullscreenElement ? document.exitFullscreen() : place.root.requestFullscreen());
  const present = () => {
    if (document.fullscreenEnabled) document.documentElement.requestFullscreen().catch(() => {});
    place.send("present", place.data.main ? "1" : name);
  };
  const entries = { screen: [fillScreen, document.fullscreenEnabled], present: [present, true] };
  const shown = Object.entries(entries).filter(([, [, possible]]) => possible);
  return shown.map(([each, [act]]) => ({ name: each, label: text(`picture.${each}`), help: text(`picture.${each}_help`), act: () => void act() }));
}

// Fill a toolbar. `own` are entries of the download menu for files that the picture makes itself, in place of the server's.
export function fillToolbar(bar, place, own = []) {
  const forms = [...own, ...FORMS.filter((form) => !own.some(({ name }) => name === form)).map((form) => describeFile(place, form))];
  const all = element("span", { className: "rv-all" },
    makeMenu("download", text("export.download"), () => forms),
    makeButton("customise", text("export.open"), () => runScript(place, "dialog", "export", (script) => void script.default(place)), { help: text("export.open_help") }),
    makeMenu("share", text("share.open"), () => listShares(place)),
    makeMenu("full", text("picture.full"), () => listScreens(place), { iconOnly: true }),
  );
  all.querySelector("[data-do=customise]").setAttribute("aria-haspopup", "dialog");
  bar.append(all);
  if (place.data.main) return;
  all.hidden = true;
  const more = makeButton("more", text("picture.tools"), () => {
    all.hidden = !all.hidden;
    more.setAttribute("aria-expanded", String(!all.hidden));
    if (!all.hidden) all.querySelector("button").focus();
  }, { iconOnly: true });
  more.setAttribute("aria-expanded", "false");
  all.before(more);
}

// A button that copies a text, read when it is pressed, and briefly shows the result.
export function makeCopyButton(name, read) {
  const node = element("button", { type: "button", textContent: name });
  node.addEventListener("click", async () => {
    node.textContent = await copyAndReport(read());
    setTimeout(() => (node.textContent = name), 1600);
  });
  return node;
}

// Without a secure context there is no clipboard API; fall back to the old command.
const copyText = async (content) => (navigator.clipboard ? navigator.clipboard.writeText(content).then(() => true, () => copyByCommand(content)) : copyByCommand(content));

function copyByCommand(content) {
  const field = element("textarea", { value: content });
  // A field outside an open menu or dialog could not be focused.
  (document.querySelector(":popover-open, dialog[open]") ?? document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

addStyle(`
.rv-tools { display: flex; flex-wrap: wrap; gap: 4px; align-items: center; justify-content: flex-end; padding-top: 2px; }
:is(.rv-table, .rv-grid) .rv-tools { padding-top: 8px; }
.rv-tools .rv-space { flex: 1; }
.rv-tools .rv-all { display: flex; gap: 6px; }
.rv-tools .rv-all[hidden], .rv-tools [hidden] { display: none; }
.rv-tools span { font-size: 14px; }
.rv-tools button:disabled { opacity: 0.5; }
.rv-tools button[data-do], .rv-bar button[data-do=more] { display: inline-flex; align-items: center; justify-content: center; gap: 6px; font-size: 14px; min-height: 36px; }
.rv-tools button[data-do=more] { border-color: transparent; }
.rv-menu { position: fixed; margin: 0; padding: 6px; min-width: 240px; max-width: min(360px, calc(100vw - 16px)); box-sizing: border-box; font: 15px/1.35 var(--st-font); color: var(--st-text-color); background: var(--st-background-color); border: 1px solid var(--st-border-color); border-radius: 8px; box-shadow: 0 4px 16px rgb(0 0 0 / 0.18); }
.rv-menu button, .rv-tools .rv-menu button { display: grid; width: 100%; min-height: 40px; padding: 6px 10px; font: inherit; line-height: 1.3; text-align: left; color: inherit; background: none; border: 0; border-radius: 6px; cursor: pointer; }
.rv-menu button:is(:hover, :focus) { background: var(--st-secondary-background-color); }
.rv-menu b { font-weight: 600; }
.rv-menu small { font-size: 13px; opacity: 0.85; }
.rv-picture:fullscreen { padding: 24px; background: var(--st-background-color); overflow: auto; box-sizing: border-box; }
@media (max-width: 640px) { .rv-tools .rv-all button span { display: none; } .rv-tools .rv-all { gap: 10px; } }
`);
