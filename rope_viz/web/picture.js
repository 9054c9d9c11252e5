// All pictures of a page: requested by address when they come near the view, when the address changes, and coarsely while
// a knob moves; rope_viz/serving/picture_route.py answers. One component describes all places. A picture does not depend on
// nodes that Streamlit may replace: it moves into the new one.

import { element } from "./element.js";
import { fitToRoom } from "./fit.js";
import { loadScript, unpack } from "./message.js";
import { Outbox } from "./outbox.js";
import { copyColours, theme } from "./picture_style.js";
import { text } from "./texts.js";
import "./tools.js"; // preload

// While a knob moves, the first picture in view updates at once, the others at most every 250 ms and once the knob rests.
// A release waits up to PATIENCE for the pending picture. All in milliseconds.
const OTHERS_EVERY = 250, REST = 120, PATIENCE = 1000;
// At rest: the number of simultaneous requests; the first and longest delay of a retry (doubled each time) in milliseconds.
const AT_ONCE = 3, FIRST_RETRY = 1000, LAST_RETRY = 16000, NEAR = "300px";

const here = new URL(".", import.meta.url), version = here.pathname.split("/").at(-2);
const places = new Map(); // {address of the picture: its place}
const outbox = new Outbox();
// The last run's description of each picture; the user's contents that no address can hold.
let descriptions = {}, privateContents = null;
// What the user did to each picture (zoom, hands), which outlives its place.
const memories = new Map();

const viewObserver = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!target.__place) continue;
    target.__place.isNear = isIntersecting;
    showState(target.__place);
  }
  requestDue();
}, { rootMargin: NEAR, scrollMargin: NEAR }); // the page scrolls within an element

class Place {
  constructor(slot, { picture, kind }) {
    this.root = element("div", { className: `rv-picture rv-${kind}`, __place: this }, ...slot.childNodes);
    this.root.dataset.picture = picture;
    Object.assign(this, { outbox, isNear: false, part: 0, retryDelay: FIRST_RETRY });
    loadScript(kind).then((script) => script.prepare?.()).catch(() => {});
    this.memory = memories.get(picture) ?? memories.set(picture, {}).get(picture);
    window.ropeVizPlaceholder ??= {}; // stops placeholder.js from requesting one
    places.set(picture, this);
    viewObserver.observe(this.root);
  }

  // Apply a run's description of the picture: its query and its height.
  applyDescription(data) {
    this.data = data;
    this.root.style.minHeight = `${data.room[this.root.clientWidth < 560 ? 1 : 0]}px`;
    if (this.message && this.theme !== theme) this.show(this.message);
    this.theme = theme;
    this.showPlaceholder();
    this.requestPicture();
  }

  // Send the server what the user did to the picture.
  send(name, value) {
    outbox.send(`${this.data.picture} ${name}`, value);
  }

  // Read where moving hands are now, for the address of a file; the page's address follows them only at rest.
  readMoment() {
    const at = this.data.at && this.positions?.();
    return at ? { [this.data.at]: at.map(Math.round).join(",") } : {};
  }

  // With `asLink` the address carries the user's config, instead of a name that only this browser can resolve.
  makeAddress(form = "packed", more = {}, asLink = false) {
    const query = new URLSearchParams((asLink && this.data.link) || this.data.query);
    if (this.memory.view) query.set("view", this.memory.view.join(","));
    if (this.part) query.set("part", this.part);
    const moment = form === "packed" ? {} : this.readMoment();
    for (const [key, value] of Object.entries({ ...moment, ...more })) query.set(key, value);
    if (form === "packed") query.set("v", version);
    const search = query.toString();
    return new URL(`../picture/${this.data.picture}.${form}${search ? `?${search}` : ""}`, here).href;
  }

  // Request the picture that the description and the user's zoom name, unless it is shown already.
  requestPicture() {
    const key = `${this.data.query} ${this.memory.view ?? ""}`;
    // Slow pictures arrive in parts, coarse first; a change starts again with the first part.
    if (key !== this.key) Object.assign(this, { key, part: 0 });
    const address = this.makeAddress();
    if (address !== this.wanted) {
      this.wanted = address;
      this.onHold = false;
      this.retryDelay = FIRST_RETRY;
      this.showFailure(null);
      clearTimeout(this.retryTimer);
      this.isBlocked = false;
      // The pending request is obsolete, unless it follows a moving knob.
      if (this.requested && this.requested !== address && !this.followsKnob) this.controller.abort();
    }
    showState(this);
    requestDue();
  }

  get isDue() {
    return this.root.isConnected && this.isNear && !this.onHold && !this.isBlocked && !this.requested && this.shown !== this.wanted;
  }

  dependsOn(knob) {
    return !this.data.still && (!knob.includes(".") || this.data.knobs.includes(knob));
  }

  // Make one request and handle its answer.
  async fetchPicture() {
    const address = this.wanted, controller = this.startRequest(address, false);
    let message;
    try {
      const answer = await this.fetchFile(address, controller.signal);
      message = answer.ok && unpack(await answer.arrayBuffer());
      if (this.isObsolete(controller) || address !== this.wanted) return;
      this.endRequest(controller);
      if (!message) return this.onRefusal(answer, await answer.text());
      await this.onPicture(message, address);
      if (this.shown === this.wanted && this.part + 1 < this.data.parts) {
        this.part += 1;
        this.requestPicture();
      }
    } catch (error) {
      if (controller.signal.aborted || error.name === "AbortError") return;
      this.shown = null;
      this.retryLater(text(message ? "picture.no_script" : "picture.no_answer"));
    } finally {
      this.endRequest(controller);
    }
  }

  // Request a coarse picture for a moving knob and return what draws it. Failures are ignored.
  async fetchCoarse(knob) {
    const address = this.makeAddress("packed", { ...knob, coarse: 1 }), controller = this.startRequest(address, true);
    try {
      const answer = await this.fetchFile(address, controller.signal), message = answer.ok && unpack(await answer.arrayBuffer());
      return async () => message && knobMove && !this.isObsolete(controller) && this.onPicture({ ...message, moving: true }, address);
    } catch {
      return null;
    } finally {
      this.endRequest(controller);
    }
  }

  startRequest(address, followsKnob) {
    Object.assign(this, { requested: address, followsKnob, controller: new AbortController() });
    showState(this);
    return this.controller;
  }

  isObsolete({ signal }) {
    return signal.aborted || !this.root.isConnected;
  }

  endRequest(controller) {
    if (this.controller === controller) Object.assign(this, { requested: null, followsKnob: false });
    showState(this);
    requestDue();
  }

  async fetchFile(address, signal) {
    const answer = (await takeEarly(address)) ?? (await fetch(address, { signal }));
    if (answer.status !== 410 || !privateContents) return answer;
    // Attach the contents that no address can hold, each prefixed by its length.
    const body = new Blob(privateContents.flatMap((content) => [new Uint32Array([content.length]), content]));
    return fetch(address, { signal, method: "POST", headers: { "rope-viz": "kept" }, body });
  }

  onRefusal(answer, sentence) {
    if (answer.status === 503) return this.retryLater("", 1000 * (Number(answer.headers.get("retry-after")) || 1) * (1 + Math.random()));
    if (answer.status === 410 && this.reportedMissing !== this.wanted) outbox.send("missing", (this.reportedMissing = this.wanted));
    if (answer.status >= 500) return this.retryLater(sentence);
    this.isBlocked = true;
    this.showFailure(answer.status === 410 ? "" : sentence);
  }

  retryLater(sentence, wait = this.retryDelay) {
    this.retryDelay = Math.min(LAST_RETRY, 2 * this.retryDelay);
    this.isBlocked = true;
    if (sentence) this.showFailure(sentence);
    this.retryTimer = setTimeout(() => this.retryNow(), wait);
  }

  retryNow() {
    clearTimeout(this.retryTimer);
    this.isBlocked = false;
    requestDue();
  }

  get failureNote() {
    return this.root.querySelector(":scope > .rv-failed");
  }

  // Show the problem and a retry button in the picture's place, without changing the layout; no sentence removes both.
  showFailure(sentence, retry = this.retryNow) {
    let note = this.failureNote;
    if (note?.firstChild.textContent !== (sentence || null)) {
      note?.remove();
      if (!sentence) return;
      this.root.querySelector(":scope > .rv-coming")?.remove();
      const button = element("button", { type: "button", textContent: text("picture.retry") });
      note = element("div", { className: "rv-failed", role: "status" }, element("span", { textContent: sentence }), button);
      this.root.append(note);
    }
    note.lastChild.onclick = () => retry.call(this);
  }

  async onPicture(message, address) {
    this.shown = address;
    this.reportedMissing = null;
    await this.show(message);
    this.showFailure(null);
    this.retryDelay = FIRST_RETRY;
  }

  // On a slow line `placeholder.js` may have loaded the first picture as a file.
  showPlaceholder() {
    const message = this.root.querySelector(".rv-coming:not(img)"), placeholder = window.ropeVizPlaceholder;
    if (!message || !placeholder?.image || placeholder.picture !== this.data.picture) return;
    message.replaceWith(Object.assign(new Image(), { className: "rv-coming", src: placeholder.image, alt: message.textContent }));
  }

  async show(message) {
    this.message = message;
    showSentence(this);
    const { default: draw } = await loadScript(this.data.kind);
    if (!this.root.isConnected) this.shown = null;
    else if (this.message === message) await draw(this, fitToRoom(message));
  }
}

// The page itself may have requested its first picture (rope_viz/serving/static_middleware.py); null if it was another one.
async function takeEarly(address) {
  const early = window.ropeVizEarly;
  if (early?.address !== address) return null;
  window.ropeVizEarly = null;
  return early.answer;
}

function showSentence(place) {
  const node = findSentence(place), sentence = place.message?.sentence;
  if (node && sentence !== undefined && node.__sentence !== sentence) node.innerHTML = node.__sentence = sentence;
}

addEventListener("rv-placeholder", () => places.forEach((place) => place.showPlaceholder()));

// Put each picture into its slot; `isNew` is true after a run, which describes all pictures.
function placeAll(isNew) {
  for (const slot of document.querySelectorAll("[data-place]")) {
    const data = descriptions[slot.dataset.place];
    if (!data) continue;
    const known = places.get(data.picture), place = known ?? new Place(slot, data);
    // Streamlit may show a place twice while it moves it.
    if (!place.root.isConnected) slot.replaceChildren(place.root);
    if (isNew || !known) place.applyDescription(data);
    showSentence(place);
  }
  requestDue();
}
new MutationObserver((changes) => changes.some(({ target }) => !target.closest(".rv-picture")) && placeAll(false)).observe(document.body, { subtree: true, childList: true });

function showState(place) {
  const { root, requested, failureNote, shown, isNear } = place;
  root.dataset.state = requested ? "requested" : failureNote ? "failed" : shown && shown === place.wanted ? "shown" : isNear ? "due" : "far";
}

// At rest: request what is near the view and not yet shown, from top to bottom.
function requestDue() {
  // A run may remove a node for a while; only its final description ends a picture.
  for (const [name, place] of places) if (!descriptions[name] && !place.root.isConnected) removePlace(place);
  if (knobMove) return;
  let free = AT_ONCE - listPlaces().filter((place) => place.requested).length;
  for (const place of sortPlaces((place) => place.isDue)) if (free-- > 0) place.fetchPicture();
}

const listPlaces = () => [...places.values()];
const sortPlaces = (test) => listPlaces().filter(test).sort((a, b) => (a.root.compareDocumentPosition(b.root) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));

function removePlace(place) {
  places.delete(place.data.picture);
  // Drop unconfirmed messages of this picture.
  outbox.drop(`${place.data.picture} `);
  viewObserver.unobserve(place.root);
  clearTimeout(place.retryTimer);
  place.controller?.abort();
}

addEventListener("online", () => places.forEach((place) => place.retryNow()));

// --- While a knob moves

let knobMove = null, isEnding = false, running = null, restTimer = 0, releaseTimer = 0;

// Pictures in view follow one knob at this value; the last value wins.
export function followKnob(knob, value) {
  knobMove = { knob, value };
  isEnding = false;
  clearTimeout(releaseTimer);
  clearTimeout(restTimer);
  restTimer = setTimeout(startFollowing, REST, true);
  startFollowing();
}

function startFollowing(isAtRest = false) {
  if (isAtRest) restTimer = 0;
  running ??= drawFollowers().finally(() => (running = null));
}

// Send the last value of a released control once the first picture shows it, unless the control has moved again. `state`
// counts its moves.
export async function commitMove({ dataset }, state, send) {
  const { moves } = state;
  if (!("moving" in dataset)) return;
  await waitForPicture();
  if (!("moving" in dataset) || moves !== state.moves) return;
  delete dataset.moving;
  send();
  onRelease();
}

function waitForPicture() {
  isEnding = true;
  clearTimeout(restTimer);
  return Promise.race([running, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
}

// After a release: pictures with a new address request it at once; the others wait for the page's run.
function onRelease(idleChecks = 0) {
  if (knobMove) for (const place of listPlaces()) place.onHold = true;
  knobMove = null;
  clearTimeout(releaseTimer);
  releaseTimer = setTimeout(() => {
    const isRunning = document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "running";
    if (isRunning || idleChecks < 4) return onRelease(isRunning ? 0 : idleChecks + 1);
    for (const place of listPlaces()) place.onHold = false;
    requestDue();
  }, 50);
}

async function drawFollowers() {
  let last = null, draw = null;
  for (;;) {
    const place = knobMove && chooseNext(last);
    if (!place && !draw) return;
    const nextDraw = place?.fetchCoarse(knobMove);
    await draw?.().catch(() => null);
    [last, draw] = [place ?? last, await nextDraw];
  }
}

function chooseNext(last) {
  const [first, ...others] = listVisible().filter((place) => place.dependsOn(knobMove.knob));
  const outdated = others.filter((place) => place.followed !== knobMove);
  const due = outdated.find((place) => performance.now() - (place.followedAt ?? 0) > OTHERS_EVERY);
  const other = isEnding ? null : (due ?? (restTimer ? null : outdated[0]));
  const place = first && first.followed !== knobMove && !(due && other && last === first) ? first : other;
  if (!place) return null;
  place.followed = knobMove;
  place.followedAt = performance.now();
  if (place.requested && !place.followsKnob) place.controller.abort();
  return place;
}

const findSentence = ({ data }) => document.querySelector(`[data-says="${data.picture}"]`);

// The pictures that are visible themselves or by their sentence. Cached, because measuring is slow.
let visible = [], measuredAt = 0;

function listVisible() {
  if (performance.now() - measuredAt > OTHERS_EVERY) {
    visible = sortPlaces((place) => [place.root, findSentence(place)].some((part) => {
      const { top, bottom, width } = part?.getBoundingClientRect() ?? {};
      return width && bottom > 0 && top < innerHeight;
    }));
    measuredAt = performance.now();
  }
  return visible.filter((place) => place.root.isConnected);
}

export default function render(component) {
  copyColours(component.parentElement);
  const { pictures, confirmed, contents } = component.data;
  outbox.component = component;
  outbox.confirm(confirmed);
  if (contents) {
    privateContents = contents.map((encoded) => Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0)));
    outbox.drop("missing"); // other pictures reported the same
    for (const place of listPlaces()) place.isBlocked = false;
  }
  descriptions = pictures;
  placeAll(true);
}
