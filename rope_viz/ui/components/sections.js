// A bar that divides a whole among axes: borders are dragged or moved by arrow keys, and the pictures follow.

import { dark, fill } from "./dials.js";
import { addStyle } from "./element.js";
import { caughtUp, follow, released } from "./picture.js";
import { Post } from "./outbox.js";

const text = (state) => state.counts.join(",");

const before = (state, k) => state.counts.slice(0, k + 1).reduce((sum, each) => sum + each, 0);

// Move border k, between parts k and k + 1, so that `left` are before it; only the two parts next to it change.
function move(state, k, left) {
  const low = before(state, k - 1), high = before(state, k + 1), at = Math.min(Math.max(low, Math.round(left)), high);
  if (at === before(state, k)) return;
  state.counts[k] = at - low;
  state.counts[k + 1] = high - at;
  state.moves += 1;
  state.bar.dataset.moving = "";
  write(state);
  follow(state.data.key, text(state));
}

async function commit(state) {
  const { moves } = state;
  if (!("moving" in state.bar.dataset)) return;
  await caughtUp();
  if (!("moving" in state.bar.dataset) || moves !== state.moves) return;
  delete state.bar.dataset.moving;
  state.post.put("counts", text(state));
  released();
}

function write(state) {
  const { data, counts, bar } = state, night = dark(bar), total = data.total;
  [...bar.querySelectorAll(".rv-share")].forEach((part, k) => {
    const { word, letter, colours } = data.parts[k];
    part.style.flexGrow = counts[k];
    part.style.borderTopColor = part.style.color = colours[night ? 1 : 0];
    part.style.display = counts[k] ? "" : "none";
    part.textContent = counts[k] / total > 0.13 ? `${word} ${letter} ${counts[k]}` : counts[k] / total > 0.05 ? `${letter} ${counts[k]}` : "";
    part.title = fill(data.texts.share, { axis: word, count: counts[k], total });
  });
  [...bar.querySelectorAll(".rv-border")].forEach((border, k) => {
    border.style.left = `${(100 * before(state, k)) / total}%`;
    [border.ariaValueMin, border.ariaValueNow, border.ariaValueMax] = [k - 1, k, k + 1].map((each) => before(state, each));
    border.ariaValueText = fill(data.texts.value, { left: data.parts[k].word, left_pairs: counts[k], right: data.parts[k + 1].word, right_pairs: counts[k + 1] });
  });
}

function build(state) {
  const { bar, data } = state;
  bar.innerHTML = data.parts.map(() => '<div class="rv-share"></div>').join("") + data.parts.slice(1).map((part, k) =>
    `<div class="rv-border" role="slider" tabindex="0" aria-orientation="horizontal" aria-label="${fill(data.texts.border, { left: data.parts[k].word, right: part.word })}"></div>`).join("");
  [...bar.querySelectorAll(".rv-border")].forEach((border, k) => {
    const at = (event) => {
      const { left, width } = bar.getBoundingClientRect();
      move(state, k, ((event.clientX - left) / width) * data.total);
    };
    border.addEventListener("pointerdown", (event) => (event.preventDefault(), border.focus(), border.setPointerCapture(event.pointerId)));
    border.addEventListener("pointermove", (event) => border.hasPointerCapture(event.pointerId) && at(event));
    border.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -4, PageUp: 4 }[event.key];
      if (!by) return;
      event.preventDefault();
      move(state, k, before(state, k) + by);
    });
    for (const end of ["pointerup", "pointercancel", "keyup", "blur"]) border.addEventListener(end, () => commit(state));
  });
}

export default function render(component) {
  const { parentElement, data } = component;
  const bar = parentElement.querySelector(".rv-sections"), names = data.parts.map((part) => part.word).join();
  const state = (bar.__state ??= { bar, moves: 0, names: "", post: new Post() });
  state.post.component = component;
  state.post.taken(data.taken);
  // The user's drag wins over the server's value.
  const moving = "moving" in bar.dataset || state.post.has("counts");
  Object.assign(state, { data, counts: moving ? state.counts : data.counts.slice() });
  if (state.names !== names) {
    state.names = names;
    state.counts = data.counts.slice();
    build(state);
  }
  write(state);
}

addStyle(`
.rv-sections { position: relative; display: flex; height: 36px; margin: 0 8px; font: 13px var(--st-font); }
.rv-share { flex: 1 1 0; min-width: 0; overflow: hidden; white-space: nowrap; box-sizing: border-box; padding: 8px 4px 0 12px; border-top: 6px solid; font-weight: 600; background: var(--st-secondary-background-color); }
.rv-border {
  position: absolute; top: -2px; width: 40px; height: 40px; margin-left: -20px; cursor: ew-resize; touch-action: none;
  &::after { content: ""; position: absolute; left: 16px; top: 2px; width: 8px; height: 36px; box-sizing: border-box; border-radius: 4px; background: var(--st-background-color); border: 2px solid var(--st-primary-color); }
  &:focus-visible { outline: none; }
  &:focus-visible::after { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
}
`);
