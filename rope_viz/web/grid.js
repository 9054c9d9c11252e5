// A table of verdicts whose cells can be chosen: by a click, or by arrow keys and Enter. Each cell has a sign, the first
// letter of its verdict and, where there is room, the rest. picture.js requests it, rope_viz/picture/wire_format.py packs it.

import { addStyle, escapeHtml } from "./element.js";
import { text } from "./texts.js";
import { fillToolbar } from "./tools.js";

const SIGNS = { same: "=", differs: "≠", refused: "–", "not known": "?" };

function buildGrid(place) {
  const { root } = place;
  root.innerHTML = `<div class="rv-verdicts"><table role="grid"><thead><tr></tr></thead><tbody></tbody></table></div>
    <div class="rv-tools" role="toolbar" aria-label="${text("picture.table_tools")}"><div class="rv-space"></div></div>`;
  const state = { place, table: root.querySelector("table"), head: root.querySelector("tr"), body: root.querySelector("tbody"), cells: [] };
  fillToolbar(root.querySelector(".rv-tools"), place);
  state.body.addEventListener("click", ({ target }) => chooseCell(state, state.cells.indexOf(target.closest("td"))));
  state.body.addEventListener("keydown", (event) => moveFocus(state, event));
  return state;
}

// Move the focus over the grid by keys, by ARIA's grid pattern.
function moveFocus(state, event) {
  const at = state.cells.indexOf(event.target), { columns } = state, row = at - (at % columns);
  if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" || event.key === " ") chooseCell(state, at);
  else {
    const to = { ArrowRight: Math.min(at + 1, row + columns - 1), ArrowLeft: Math.max(at - 1, row), ArrowDown: at + columns, ArrowUp: at - columns, Home: row, End: row + columns - 1 }[event.key];
    if (to === undefined) return;
    if (state.cells[to]) focusCell(state, to);
  }
  event.preventDefault();
}

function focusCell(state, at) {
  for (const cell of state.body.querySelectorAll("[tabindex='0']")) cell.tabIndex = -1;
  state.cells[at].tabIndex = 0;
  state.cells[at].focus();
}

function chooseCell(state, at) {
  if (at < 0) return;
  markChosen(state, at);
  focusCell(state, at);
  state.place.send("pin", at);
}

function markChosen(state, chosen) {
  for (const cell of state.body.querySelectorAll("[aria-selected], [tabindex='0']")) {
    cell.removeAttribute("aria-selected");
    cell.tabIndex = -1;
  }
  const cell = state.cells[chosen];
  if (cell) Object.assign(cell, { ariaSelected: "true", tabIndex: 0 });
}

export default function showGrid(place, message) {
  const state = (place.root.__grid ??= buildGrid(place));
  const { columns, states, title, chosen, letters } = message, [first, ...names] = Object.keys(columns), key = JSON.stringify([columns, states, letters]);
  state.columns = names.length;
  state.table.ariaLabel = title;
  state.table.parentElement.classList.toggle("rv-lettered", letters.length > 0);
  if (state.key !== key) {
    state.key = key;
    // One string: 150 cells made one by one take twice the time.
    const makeCell = (label, row) => (name, column) => {
      const content = columns[name][row], at = row * names.length + column, verdict = states[at], word = text(`verdicts.${verdict.replace(" ", "_")}`);
      const letter = letters[at] ?? word[0].toUpperCase(), more = content.slice(word.length).replace(letters.length ? / \(.*\)$/ : "", "").trim();
      return `<td role="gridcell" tabindex="-1" class="rv-${verdict.replace(" ", "-")}" aria-label="${escapeHtml(`${label}, ${name}: ${content}`)}">${SIGNS[verdict]} ${letter}${more && ` <span>${escapeHtml(more)}</span>`}</td>`;
    };
    const makeRow = (label, row) => {
      // A trainer's name ends with its release.
      const end = letters.length ? label.length : label.lastIndexOf(" ");
      return `<tr><th scope="row">${escapeHtml(label.slice(0, end))} <small>${escapeHtml(label.slice(end + 1))}</small></th>${names.map(makeCell(label, row)).join("")}</tr>`;
    };
    state.head.innerHTML = [first, ...names].map((name) => `<th scope="col"><b>${escapeHtml(name)}</b></th>`).join("");
    state.body.innerHTML = columns[first].map(makeRow).join("");
    state.cells = [...state.body.querySelectorAll("td")];
  }
  markChosen(state, chosen);
  place.root.dataset.drawn = String(Number(place.root.dataset.drawn ?? 0) + 1);
}

addStyle(`
.rv-verdicts {
  overflow-x: auto; border: 1px solid var(--st-border-color); border-radius: 8px; font-size: 14px;
  table { border-spacing: 0; width: 100%; table-layout: fixed; font-variant-numeric: tabular-nums; }
  th, td { padding: 0 6px; height: 36px; border-bottom: 1px solid var(--st-border-color); box-sizing: border-box; }
  tr:last-child :is(td, th) { border-bottom: 0; }
  th { text-align: left; font-weight: 600; background: var(--st-secondary-background-color); }
  thead th { height: 56px; text-align: center; }
  th:first-child { text-align: left; padding-left: 12px; }
  thead th:first-child { width: 23%; }
  small { font-size: 12px; font-weight: 400; opacity: 0.85; }
  td { text-align: center; white-space: nowrap; cursor: pointer; font-weight: 600; border-left: 1px solid var(--st-border-color); }
  td:hover { background: var(--st-secondary-background-color); }
  td:focus-visible, td[aria-selected=true] { outline: 3px solid var(--st-primary-color); outline-offset: -3px; }
  span { font-weight: 400; color: var(--rv-ink); }
}
.rv-same { color: var(--rv-good); }
.rv-differs { color: var(--rv-key); background: color-mix(in srgb, var(--rv-key) 7%, transparent); }
.rv-refused { background: color-mix(in srgb, var(--rv-quiet) 16%, transparent); }
.rv-not-known { color: var(--rv-quiet); }
.rv-lettered { max-height: 540px; overflow: auto;
  td { white-space: normal; line-height: 1.1; }
  thead th { position: sticky; top: 0; z-index: 1; }
}
@media (max-width: 760px) {
  .rv-lettered { max-height: 840px; }
  .rv-verdicts {
    td span, small { display: none; }
    td { padding: 0; width: 36px; min-width: 34px; font-size: 14px; }
    tbody th { font-size: 13px; line-height: 1.15; height: 40px; padding: 0 4px 0 8px; }
    thead th:first-child { width: 29%; }
    thead th { height: 150px; padding: 6px 0; vertical-align: bottom; }
    thead th:not(:first-child) b { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; font-size: 13px; }
  }
}
`);
