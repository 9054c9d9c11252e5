// All pictures of a page: requested by address when they come near the view, when the address changes, and coarsely while
// a knob moves; rope_viz/ui/picture_route.py answers. One component describes all places. A picture does not depend on
// nodes that Streamlit may replace: it moves into the new one.

import { element } from "./element.js";
import { fit } from "./fit.js";
import { drawing, unpack } from "./message.js";
import { Post } from "./outbox.js";
import { text } from "./texts.js";
import "./tools.js"; // preload

// While a knob moves, the first picture in view updates at once, the others at most every 250 ms and once the knob rests.
// A release waits up to PATIENCE for the pending picture. All in milliseconds.
const OTHERS_EVERY = 250, REST = 120, PATIENCE = 1000;
// At rest: the number of simultaneous requests; the first and longest delay of a retry (doubled each time) in milliseconds.
const AT_ONCE = 3, FIRST_RETRY = 1000, LAST_RETRY = 16000, NEAR = "300px";

const here = new URL(".", import.meta.url), version = here.pathname.split("/").at(-2);
const places = new Map(); // {address of the picture: its place}
const post = new Post();
// The last run's description of each picture; the contents that no address can hold.
let described = {}, kept = null;
// What the user did to a picture (zoom, hands) outlives its place.
const remembered = new Map();

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!target.__place) continue;
    target.__place.near = isIntersecting;
    mark(target.__place);
  }
  pump();
}, { rootMargin: NEAR, scrollMargin: NEAR }); // the page scrolls within an element

class Place {
  constructor(slot, { picture, kind }) {
    this.root = element("div", { className: `rv-picture rv-${kind}`, __place: this }, ...slot.childNodes);
    this.root.dataset.picture = picture;
    Object.assign(this, { post, near: false, part: 0, retry: FIRST_RETRY });
    drawing(kind).then((script) => script.prepare?.()).catch(() => {});
    this.memory = remembered.get(picture) ?? remembered.set(picture, {}).get(picture);
    window.ropeVizPlaceholder ??= {}; // stops placeholder.js from requesting one
    places.set(picture, this);
    near.observe(this.root);
  }

  // Apply a run's description of the picture: its query and its height.
  take(data) {
    this.data = data;
    this.root.style.minHeight = `${data.room[this.root.clientWidth < 560 ? 1 : 0]}px`;
    if (this.message && this.theme !== theme) this.show(this.message);
    this.theme = theme;
    showPlaceholder(this);
    this.want();
  }

  // Tell the server what was done to the picture.
  tell(name, value) {
    post.put(`${this.data.picture} ${name}`, value);
  }

  // With `link` the address carries the user's config, instead of a name that only this browser can resolve.
  address(form = "packed", more = {}, link = false) {
    const query = new URLSearchParams((link && this.data.link) || this.data.query);
    if (this.memory.view) query.set("view", this.memory.view.join(","));
    if (this.part) query.set("part", this.part);
    for (const [key, value] of Object.entries(more)) query.set(key, value);
    if (form === "packed") query.set("v", version);
    const search = query.toString();
    return new URL(`../picture/${this.data.picture}.${form}${search ? `?${search}` : ""}`, here).href;
  }

  want() {
    const whole = `${this.data.query} ${this.memory.view ?? ""}`;
    // Slow pictures arrive in parts, coarse first; a change starts again with the first part.
    if (whole !== this.whole) Object.assign(this, { whole, part: 0 });
    const address = this.address();
    if (address !== this.wanted) {
      this.wanted = address;
      this.held = false;
      this.retry = FIRST_RETRY;
      this.fail(null);
      clearTimeout(this.again);
      this.blocked = false;
      // The pending request is obsolete, unless it follows a moving knob.
      if (this.asked && this.asked !== address && !this.moving) this.controller.abort();
    }
    mark(this);
    pump();
  }

  get due() {
    return this.root.isConnected && this.near && !this.held && !this.blocked && !this.asked && this.shown !== this.wanted;
  }

  follows(knob) {
    return !this.data.still && (!knob.includes(".") || this.data.knobs.includes(knob));
  }

  // Make one request and handle its answer.
  async ask() {
    const address = this.wanted, controller = this.begun(address, false);
    let message;
    try {
      const answer = await this.fetched(address, controller.signal);
      message = answer.ok && unpack(await answer.arrayBuffer());
      if (this.gone(controller) || address !== this.wanted) return;
      this.done(controller);
      if (!message) return this.refused(answer, await answer.text());
      await this.came(message, address);
      if (this.shown === this.wanted && this.part + 1 < this.data.parts) {
        this.part += 1;
        this.want();
      }
    } catch (error) {
      if (controller.signal.aborted || error.name === "AbortError") return;
      this.shown = null;
      this.later(text(message ? "picture.no_script" : "picture.no_answer"));
    } finally {
      this.done(controller);
    }
  }

  // Request a coarse picture for a moving knob and return what draws it. Failures are ignored.
  async follow(knob) {
    const address = this.address("packed", { ...knob, coarse: 1 }), controller = this.begun(address, true);
    try {
      const answer = await this.fetched(address, controller.signal), message = answer.ok && unpack(await answer.arrayBuffer());
      return async () => message && wanted && !this.gone(controller) && this.came({ ...message, moving: true }, address);
    } catch {
      return null;
    } finally {
      this.done(controller);
    }
  }

  begun(address, moving) {
    Object.assign(this, { asked: address, moving, controller: new AbortController() });
    mark(this);
    return this.controller;
  }

  gone({ signal }) {
    return signal.aborted || !this.root.isConnected;
  }

  done(controller) {
    if (this.controller === controller) Object.assign(this, { asked: null, moving: false });
    mark(this);
    pump();
  }

  async fetched(address, signal) {
    const answer = await fetch(address, { signal });
    if (answer.status !== 410 || !kept) return answer;
    // Attach the contents that no address can hold, each prefixed by its length.
    const body = new Blob(kept.flatMap((content) => [new Uint32Array([content.length]), content]));
    return fetch(address, { signal, method: "POST", headers: { "rope-viz": "kept" }, body });
  }

  refused(answer, sentence) {
    if (answer.status === 503) return this.later("", 1000 * (Number(answer.headers.get("retry-after")) || 1) * (1 + Math.random()));
    if (answer.status === 410 && this.missing !== this.wanted) post.put("missing", (this.missing = this.wanted));
    if (answer.status >= 500) return this.later(sentence);
    this.blocked = true;
    this.fail(answer.status === 410 ? "" : sentence);
  }

  later(sentence, wait = this.retry) {
    this.retry = Math.min(LAST_RETRY, 2 * this.retry);
    this.blocked = true;
    if (sentence) this.fail(sentence);
    this.again = setTimeout(() => this.anew(), wait);
  }

  anew() {
    clearTimeout(this.again);
    this.blocked = false;
    pump();
  }

  get failed() {
    return this.root.querySelector(":scope > .rv-failed");
  }

  // Show the problem and a retry button in the picture's place, without changing the layout.
  fail(sentence, again = this.anew) {
    let note = this.failed;
    if (note?.firstChild.textContent !== (sentence || null)) {
      note?.remove();
      if (!sentence) return;
      this.root.querySelector(":scope > .rv-coming")?.remove();
      const button = element("button", { type: "button", textContent: text("picture.retry") });
      note = element("div", { className: "rv-failed", role: "status" }, element("span", { textContent: sentence }), button);
      this.root.append(note);
    }
    note.lastChild.onclick = () => again.call(this);
  }

  async came(message, address) {
    this.shown = address;
    this.missing = null;
    await this.show(message);
    this.fail(null);
    this.retry = FIRST_RETRY;
  }

  async show(message) {
    this.message = message;
    showSentence(this);
    const { default: draw } = await drawing(this.data.kind);
    if (!this.root.isConnected) this.shown = null;
    else if (this.message === message) await draw(this, fit(message));
  }
}

function showSentence(place) {
  const node = sentenceNode(place), sentence = place.message?.sentence;
  if (node && sentence !== undefined && node.__sentence !== sentence) node.innerHTML = node.__sentence = sentence;
}

// On a slow line `placeholder.js` may have loaded the first picture as a file.
export function showPlaceholder({ root, data }) {
  const message = root.querySelector(".rv-coming:not(img)"), placeholder = window.ropeVizPlaceholder;
  if (!message || !placeholder?.image || placeholder.picture !== data.picture) return;
  message.replaceWith(Object.assign(new Image(), { className: "rv-coming", src: placeholder.image, alt: message.textContent }));
}
addEventListener("rv-placeholder", () => places.forEach(showPlaceholder));

function settle(fresh) {
  for (const slot of document.querySelectorAll("[data-place]")) {
    const data = described[slot.dataset.place];
    if (!data) continue;
    const known = places.get(data.picture), place = known ?? new Place(slot, data);
    // Streamlit may show a place twice while it moves it.
    if (!place.root.isConnected) slot.replaceChildren(place.root);
    if (fresh || !known) place.take(data);
    showSentence(place);
  }
  pump();
}
new MutationObserver((changes) => changes.some(({ target }) => !target.closest(".rv-picture")) && settle(false)).observe(document.body, { subtree: true, childList: true });

function mark(place) {
  const { root, asked, failed, shown, near } = place;
  root.dataset.state = asked ? "asking" : failed ? "failed" : shown && shown === place.wanted ? "shown" : near ? "due" : "far";
}

// At rest: request what is near the view and not yet shown, from top to bottom.
function pump() {
  // A run may remove a node for a while; only its final description ends a picture.
  for (const [name, place] of places) if (!described[name] && !place.root.isConnected) leave(place);
  if (wanted) return;
  let free = AT_ONCE - all().filter((place) => place.asked).length;
  for (const place of inOrder((place) => place.due)) if (free-- > 0) place.ask();
}

const all = () => [...places.values()];
const inOrder = (test) => all().filter(test).sort((a, b) => (a.root.compareDocumentPosition(b.root) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));

function leave(place) {
  places.delete(place.data.picture);
  // Drop unconfirmed messages of this picture.
  post.drop(`${place.data.picture} `);
  near.unobserve(place.root);
  clearTimeout(place.again);
  place.controller?.abort();
}

addEventListener("online", () => places.forEach((place) => place.anew()));

// --- While a knob moves

let wanted = null, ending = false, running = null, rest = 0, settling = 0;

// Pictures in view follow one knob at this value; the last value wins.
export function follow(knob, value) {
  wanted = { knob, value };
  ending = false;
  clearTimeout(settling);
  clearTimeout(rest);
  rest = setTimeout(start, REST, true);
  start();
}

function start(resting = false) {
  if (resting) rest = 0;
  running ??= run().finally(() => (running = null));
}

// The knob was released: resolves once the first picture shows the last value.
export function caughtUp() {
  ending = true;
  clearTimeout(rest);
  return Promise.race([running, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
}

// After a release: pictures with a new address request it at once; the others wait for the page's run.
export function released(calm = 0) {
  if (wanted) for (const place of all()) place.held = true;
  wanted = null;
  clearTimeout(settling);
  settling = setTimeout(() => {
    const working = document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "running";
    if (working || calm < 4) return released(working ? 0 : calm + 1);
    for (const place of all()) place.held = false;
    pump();
  }, 50);
}

async function run() {
  let last = null, draw = null;
  for (;;) {
    const place = wanted && next(last);
    if (!place && !draw) return;
    const coming = place?.follow(wanted);
    await draw?.().catch(() => null);
    [last, draw] = [place ?? last, await coming];
  }
}

function next(last) {
  const [first, ...others] = inView().filter((place) => place.follows(wanted.knob));
  const behind = others.filter((place) => place.followed !== wanted);
  const due = behind.find((place) => performance.now() - (place.followedAt ?? 0) > OTHERS_EVERY);
  const other = ending ? null : (due ?? (rest ? null : behind[0]));
  const place = first && first.followed !== wanted && !(due && other && last === first) ? first : other;
  if (!place) return null;
  place.followed = wanted;
  place.followedAt = performance.now();
  if (place.asked && !place.moving) place.controller.abort();
  return place;
}

const sentenceNode = ({ data }) => document.querySelector(`[data-says="${data.picture}"]`);

// Visible if the picture or its sentence is. Cached, because measuring is slow.
let visible = [], lookedAt = 0;

function inView() {
  if (performance.now() - lookedAt > OTHERS_EVERY) {
    visible = inOrder((place) => [place.root, sentenceNode(place)].some((part) => {
      const { top, bottom, width } = part?.getBoundingClientRect() ?? {};
      return width && bottom > 0 && top < innerHeight;
    }));
    lookedAt = performance.now();
  }
  return visible.filter((place) => place.root.isConnected);
}

export default function render(component) {
  dress(component.parentElement);
  const { pictures, taken, kept: contents } = component.data;
  post.component = component;
  post.taken(taken);
  if (contents) {
    kept = contents.map((encoded) => Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0)));
    post.drop("missing"); // other pictures reported the same
    for (const place of all()) place.blocked = false;
  }
  described = pictures;
  settle(true);
}

// Only components get Streamlit's colours: copy them to the document.
const COLOURS = ["background-color", "border-color", "font", "primary-color", "red-text-color", "secondary-background-color", "text-color"];
const sheet = document.head.appendChild(document.createElement("style"));
let theme = "";

function dress(node) {
  const style = getComputedStyle(node), now = COLOURS.map((name) => `--st-${name}: ${style.getPropertyValue(`--st-${name}`)}`).join("; ");
  if (now === theme) return;
  theme = now;
  sheet.textContent = `${STYLE}.rv-picture { ${theme} }`;
}

const STYLE = `
.rv-picture { position: relative; font-family: var(--st-font); color: var(--st-text-color); }
.rv-failed {
  position: absolute; z-index: 2; inset: 8px 8px auto; display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; justify-content: space-between; padding: 10px 14px; font-size: 14px;
  color: var(--st-text-color); background: var(--st-secondary-background-color); border: 1px solid var(--st-border-color); border-radius: 8px;
}
:is(.rv-failed, .rv-tools) button {
  font: inherit; font-size: 13px; line-height: 1; min-height: 30px; min-width: 40px; padding: 0 10px; cursor: pointer; box-sizing: border-box;
  color: var(--st-text-color); background: transparent; border: 1px solid var(--st-border-color); border-radius: 6px;
}
:is(.rv-failed, .rv-tools) button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.rv-picture :is(button, input, select, [tabindex="0"]):focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media (pointer: coarse), (max-width: 640px) { :is(.rv-failed, .rv-tools) button { min-height: 40px; } }
`;
