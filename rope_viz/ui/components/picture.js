// Every picture on a page: asked for by its address when it comes near the view, when that changes, and while a knob
// moves, then coarsely; rope_viz/ui/picture_route.py answers. One component says what belongs into all places.
// Nothing of it depends on a node that Streamlit may replace: a picture moves into the new one.

import { drawing, unpack } from "./message.js";
import { Post } from "./post.js";
import "./tools.js"; // comes beside, for what draws

// Under a knob the first picture in view follows the hand at once; the others at most four times a second, and once it
// rests. A release waits this long for the picture on its way.
const OTHERS_EVERY = 250, REST = 120, PATIENCE = 1000;
// At rest so many are on their way at once; what failed is tried again after so many milliseconds, then twice as many.
const AT_ONCE = 3, FIRST_RETRY = 1000, LAST_RETRY = 16000, NEAR = "300px";

const here = new URL(".", import.meta.url), version = here.pathname.split("/").at(-2);
const places = new Map(); // {address of the picture: its place}
const post = new Post();
// What the last run said of each picture; what no address can hold.
let told = {}, kept = null;
// What a reader did to a picture (zoom, hands) outlives its place.
const remembered = new Map();

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!target.__place) continue;
    target.__place.near = isIntersecting;
    mark(target.__place);
  }
  pump();
}, { rootMargin: NEAR, scrollMargin: NEAR }); // the page scrolls in a box of its own

class Place {
  constructor(slot, { picture, kind }) {
    this.root = Object.assign(document.createElement("div"), { className: `rv-picture rv-${kind}`, __place: this });
    this.root.dataset.picture = picture;
    this.root.append(...slot.childNodes);
    Object.assign(this, { post, near: false, part: 0, retry: FIRST_RETRY });
    drawing(kind).then((script) => script.prepare?.()).catch(() => {});
    this.memory = remembered.get(picture) ?? remembered.set(picture, {}).get(picture);
    window.ropeVizStill ??= {}; // none is asked for any more
    places.set(picture, this);
    near.observe(this.root);
  }

  // What a run of the page says: with which query, in which room.
  take(data) {
    this.data = data;
    this.root.style.minHeight = `${data.room[this.root.clientWidth < 560 ? 1 : 0]}px`;
    if (this.message && this.theme !== theme) this.show(this.message);
    this.theme = theme;
    standIn(this);
    this.want();
  }

  // To the server: what was done to the picture.
  tell(name, value) {
    post.put(`${this.data.picture} ${name}`, value);
  }

  address(form = "packed", more = {}) {
    const query = new URLSearchParams(this.data.query);
    if (this.memory.view) query.set("view", this.memory.view.join(","));
    if (this.part) query.set("part", this.part);
    for (const [key, value] of Object.entries(more)) query.set(key, value);
    if (form === "packed") query.set("v", version);
    const text = query.toString();
    return new URL(`../picture/${this.data.picture}.${form}${text ? `?${text}` : ""}`, here).href;
  }

  want() {
    const whole = `${this.data.query} ${this.memory.view ?? ""}`;
    // What takes long comes in parts, coarse first; a change begins again with the first.
    if (whole !== this.whole) Object.assign(this, { whole, part: 0 });
    const address = this.address();
    if (address !== this.wanted) {
      this.wanted = address;
      this.held = false;
      this.retry = FIRST_RETRY;
      this.fail(null);
      clearTimeout(this.again);
      this.blocked = false;
      // Nobody wants what is on its way, unless it is for the hand on a knob.
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

  // One request and its answer.
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
      this.later(message ? "What draws this picture did not come." : "This picture did not come: no answer from the server.");
    } finally {
      this.done(controller);
    }
  }

  // Under the hand on a knob: what draws it, once it has come. What does not come is not missed.
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
    // What no address can hold goes along: every content behind its length.
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

  // In its place, moving nothing: what went wrong, and a button that does it again.
  fail(sentence, again = this.anew) {
    let note = this.failed;
    if (note?.firstChild.textContent !== (sentence || null)) {
      note?.remove();
      if (!sentence) return;
      this.root.querySelector(":scope > .rv-coming")?.remove();
      note = Object.assign(document.createElement("div"), { className: "rv-failed", role: "status" });
      note.innerHTML = '<span></span><button type="button">Try again</button>';
      note.firstChild.textContent = sentence;
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
    say(this);
    const { default: draw } = await drawing(this.data.kind);
    if (!this.root.isConnected) this.shown = null;
    else if (this.message === message) await draw(this, message);
  }
}

function say(place) {
  const at = sentence(place), said = place.message?.sentence;
  if (at && said !== undefined && at.__said !== said) at.innerHTML = at.__said = said;
}

// On a slow line the first picture of the page came as a file before the scripts (`still.js`): it stands here meanwhile.
export function standIn({ root, data }) {
  const word = root.querySelector(".rv-coming:not(img)"), still = window.ropeVizStill;
  if (!word || !still?.image || still.picture !== data.picture) return;
  word.replaceWith(Object.assign(new Image(), { className: "rv-coming", src: still.image, alt: word.textContent }));
}
addEventListener("rv-still", () => places.forEach(standIn));

// Each picture into its place, also where Streamlit has just put another node for it, before that is seen.
function settle(fresh) {
  for (const slot of document.querySelectorAll("[data-place]")) {
    const data = told[slot.dataset.place];
    if (!data) continue;
    const known = places.get(data.picture), place = known ?? new Place(slot, data);
    // Streamlit may show a place twice while it puts it elsewhere: who takes it from one of them there never ends.
    if (!place.root.isConnected) slot.replaceChildren(place.root);
    if (fresh || !known) place.take(data);
    say(place);
  }
  pump();
}
new MutationObserver((changes) => changes.some(({ target }) => !target.closest(".rv-picture")) && settle(false)).observe(document.body, { subtree: true, childList: true });

// For who looks on: what the place is doing.
function mark(place) {
  const { root, asked, failed, shown, near } = place;
  root.dataset.state = asked ? "asking" : failed ? "failed" : shown && shown === place.wanted ? "shown" : near ? "due" : "far";
}

// At rest: what is near the view and not yet shown, from the top of the page down.
function pump() {
  // A run may take a node away a while before it gives another; what it says at its end ends a picture.
  for (const [name, place] of places) if (!told[name] && !place.root.isConnected) leave(place);
  if (wanted) return;
  let free = AT_ONCE - all().filter((place) => place.asked).length;
  for (const place of inOrder((place) => place.due)) if (free-- > 0) place.ask();
}

const all = () => [...places.values()];
const inOrder = (test) => all().filter(test).sort((a, b) => (a.root.compareDocumentPosition(b.root) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));

function leave(place) {
  places.delete(place.data.picture);
  // What was asked there and not yet taken is asked of nothing any more.
  post.drop(`${place.data.picture} `);
  near.unobserve(place.root);
  clearTimeout(place.again);
  place.controller?.abort();
}

addEventListener("online", () => places.forEach((place) => place.anew()));

// --- While a knob moves

let wanted = null, ending = false, running = null, rest = 0, settling = 0;

// Pictures in view follow one knob at this value; the last value asked for wins.
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

// The hand has left: settled once the first picture shows the last value.
export function caughtUp() {
  ending = true;
  clearTimeout(rest);
  return Promise.race([running, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
}

// After a release: who gets another address asks at once; the others wait until the page has run, and then go back to
// what their own one shows.
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

// While one picture is drawn the next is on its way.
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

const sentence = ({ data }) => document.querySelector(`[data-says="${data.picture}"]`);

// In view where it or its sentence is; to look makes the browser lay out the page.
let seen = [], lookedAt = 0;

function inView() {
  if (performance.now() - lookedAt > OTHERS_EVERY) {
    seen = inOrder((place) => [place.root, sentence(place)].some((part) => {
      const { top, bottom, width } = part?.getBoundingClientRect() ?? {};
      return width && bottom > 0 && top < innerHeight;
    }));
    lookedAt = performance.now();
  }
  return seen.filter((place) => place.root.isConnected);
}

export default function render(component) {
  dress(component.parentElement);
  const { pictures, taken, kept: contents } = component.data;
  post.component = component;
  post.taken(taken);
  if (contents) {
    kept = contents.map((text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
    post.drop("missing"); // others asked for the same
    for (const place of all()) place.blocked = false;
  }
  told = pictures;
  settle(true);
}

// Streamlit says its colours to components alone.
const SAID = ["background-color", "border-color", "font", "primary-color", "red-text-color", "secondary-background-color", "text-color"];
const sheet = document.head.appendChild(document.createElement("style"));
let theme = "";

function dress(node) {
  const said = getComputedStyle(node), now = SAID.map((name) => `--st-${name}: ${said.getPropertyValue(`--st-${name}`)}`).join("; ");
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
.rv-failed button, .rv-tools button {
  font: inherit; font-size: 13px; line-height: 1; min-height: 30px; min-width: 40px; padding: 0 10px; cursor: pointer; box-sizing: border-box;
  color: var(--st-text-color); background: transparent; border: 1px solid var(--st-border-color); border-radius: 6px;
}
.rv-failed button:hover, .rv-tools button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.rv-picture button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media (pointer: coarse), (max-width: 640px) { .rv-tools button, .rv-failed button { min-height: 40px; } }
`;
