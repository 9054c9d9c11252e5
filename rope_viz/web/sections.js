// A bar that divides a whole among axes: borders are dragged or moved by arrow keys, and the pictures follow.

import { fill } from "./dials.js";
import { addStyle, isDark } from "./element.js";
import { commitMove, followKnob } from "./picture.js";
import { Outbox } from "./outbox.js";

const formatCounts = (state) => state.counts.join(",");

const countBefore = (state, k) => state.counts.slice(0, k + 1).reduce((sum, each) => sum + each, 0);

// Move border k, between parts k and k + 1, so that `left` pairs are before it; only the two parts next to it change.
function moveBorder(state, k, left) {
  const low = countBefore(state, k - 1), high = countBefore(state, k + 1), to = Math.min(Math.max(low, Math.round(left)), high);
  if (to === countBefore(state, k)) return;
  state.counts[k] = to - low;
  state.counts[k + 1] = high - to;
  state.moves += 1;
  state.bar.dataset.moving = "";
  writeBar(state);
  followKnob(state.data.key, formatCounts(state));
}

const commitCounts = (state) => commitMove(state.bar, state, () => state.outbox.send("counts", formatCounts(state)));

function writeBar(state) {
  const { data, counts, bar } = state, night = isDark(bar), total = data.total;
  [...bar.querySelectorAll(".rv-share")].forEach((part, k) => {
    const { word, letter, colours } = data.parts[k];
    part.style.flexGrow = counts[k];
    part.style.borderTopColor = part.style.color = colours[night ? 1 : 0];
    part.style.display = counts[k] ? "" : "none";
    part.textContent = counts[k] / total > 0.13 ? `${word} ${letter} ${counts[k]}` : counts[k] / total > 0.05 ? `${letter} ${counts[k]}` : "";
    part.title = fill(data.texts.share, { axis: word, count: counts[k], total });
  });
  [...bar.querySelectorAll(".rv-border")].forEach((border, k) => {
    border.style.left = `${(100 * countBefore(state, k)) / total}%`;
    [border.ariaValueMin, border.ariaValueNow, border.ariaValueMax] = [k - 1, k, k + 1].map((each) => countBefore(state, each));
    border.ariaValueText = fill(data.texts.value, { left: data.parts[k].word, left_pairs: counts[k], right: data.parts[k + 1].word, right_pairs: counts[k + 1] });
  });
}

function buildBar(state) {
  const { bar, data } = state;
  bar.innerHTML = data.parts.map(() => '<div class="rv-share"></div>').join("") + data.parts.slice(1).map((part, k) =>
    `<div class="rv-border" role="slider" tabindex="0" aria-orientation="horizontal" aria-label="${fill(data.texts.border, { left: data.parts[k].word, right: part.word })}"></div>`).join("");
  [...bar.querySelectorAll(".rv-border")].forEach((border, k) => {
    const followPointer = (event) => {
      const { left, width } = bar.getBoundingClientRect();
      moveBorder(state, k, ((event.clientX - left) / width) * data.total);
    };
    border.addEventListener("pointerdown", (event) => (event.preventDefault(), border.focus(), border.setPointerCapture(event.pointerId)));
    border.addEventListener("pointermove", (event) => border.hasPointerCapture(event.pointerId) && followPointer(event));
    border.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -4, PageUp: 4 }[event.key];
      if (!by) return;
      event.preventDefault();
      moveBorder(state, k, countBefore(state, k) + by);
    });
    for (const end of ["pointerup", "pointercancel", "keyup", "blur"]) border.addEventListener(end, () => commitCounts(state));
  });
}

export default function render(component) {
  const { parentElement, data } = component;
  const bar = parentElement.querySelector(".rv-sections"), names = data.parts.map((part) => part.word).join();
  const state = (bar.__state ??= { bar, moves: 0, names: "", outbox: new Outbox() });
  state.outbox.component = component;
  state.outbox.confirm(data.confirmed);
  // The user's drag wins over the server's value.
  const isMoving = "moving" in bar.dataset || state.outbox.isPending("counts");
  Object.assign(state, { data, counts: isMoving ? state.counts : data.counts.slice() });
  if (state.names !== names) {
    state.names = names;
    state.counts = data.counts.slice();
    buildBar(state);
  }
  writeBar(state);
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
