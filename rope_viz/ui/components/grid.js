// A table of verdicts whose cells can be chosen: by a click, or by arrow keys and Enter. Each cell has a sign, the first
// letter of its verdict and, where there is room, the rest. picture.js requests it, rope_viz/pictures/wire_format.py packs it.

import { addStyle, element } from "./element.js";
import { text } from "./texts.js";
import { fill as fillTools } from "./tools.js";

const SIGNS = { same: "=", differs: "≠", refused: "–", "not known": "?" };

function build(place) {
  const { root } = place;
  root.innerHTML = `<div class="rv-verdicts"><table role="grid"><thead><tr></tr></thead><tbody></tbody></table></div>
    <div class="rv-tools" role="toolbar" aria-label="${text("picture.table_tools")}"><div class="rv-space"></div></div>`;
  const state = { place, table: root.querySelector("table"), head: root.querySelector("tr"), body: root.querySelector("tbody"), cells: [] };
  fillTools(root.querySelector(".rv-tools"), place);
  state.body.addEventListener("click", ({ target }) => choose(state, state.cells.indexOf(target.closest("td"))));
  state.body.addEventListener("keydown", (event) => step(state, event));
  return state;
}

// Move the focus over the grid, as its pattern of ARIA says.
function step(state, event) {
  const at = state.cells.indexOf(event.target), { columns } = state, row = at - (at % columns);
  if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" || event.key === " ") choose(state, at);
  else {
    const to = { ArrowRight: Math.min(at + 1, row + columns - 1), ArrowLeft: Math.max(at - 1, row), ArrowDown: at + columns, ArrowUp: at - columns, Home: row, End: row + columns - 1 }[event.key];
    if (to === undefined) return;
    if (state.cells[to]) focus(state, to);
  }
  event.preventDefault();
}

function focus(state, at) {
  for (const cell of state.cells) cell.tabIndex = -1;
  state.cells[at].tabIndex = 0;
  state.cells[at].focus();
}

function choose(state, at) {
  if (at < 0) return;
  mark(state, at);
  focus(state, at);
  state.place.tell("pin", at);
}

function mark(state, chosen) {
  state.cells.forEach((cell, at) => {
    cell.ariaSelected = String(at === chosen);
    cell.tabIndex = at === chosen ? 0 : -1;
  });
}

export default function show(place, message) {
  const state = (place.root.__grid ??= build(place));
  const { columns, states, title, chosen } = message, [first, ...names] = Object.keys(columns), key = JSON.stringify([columns, states]);
  state.columns = names.length;
  state.table.ariaLabel = title;
  if (state.key !== key) {
    state.key = key;
    const head = (name) => element("th", { scope: "col" }, element("span", { textContent: name }));
    state.head.replaceChildren(...[first, ...names].map(head));
    state.cells = [];
    state.body.replaceChildren(...columns[first].map((label, row) => {
      const end = label.lastIndexOf(" ");
      const heading = element("th", { scope: "row" }, `${label.slice(0, end)} `, element("small", { textContent: label.slice(end + 1) }));
      const cells = names.map((name, column) => {
        const content = columns[name][row], verdict = states[row * names.length + column];
        const sign = element("b", { textContent: `${SIGNS[verdict]} ${verdict[0].toUpperCase()}` });
        const cell = element("td", { role: "gridcell", className: `rv-${verdict.replace(" ", "-")}`, ariaLabel: `${label}, ${name}: ${content}`, title: content }, sign);
        const more = content.slice(verdict.length).trim();
        if (more) cell.append(" ", element("span", { textContent: more }));
        state.cells.push(cell);
        return cell;
      });
      return element("tr", {}, heading, ...cells);
    }));
  }
  mark(state, chosen);
  place.root.dataset.drawn = String(Number(place.root.dataset.drawn ?? 0) + 1);
}

addStyle(`
.rv-verdicts {
  overflow-x: auto; border: 1px solid var(--st-border-color); border-radius: 8px; font-size: 14px;
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
  th, td { padding: 0 6px; height: 36px; border-bottom: 1px solid var(--st-border-color); box-sizing: border-box; }
  tr:last-child :is(td, th) { border-bottom: 0; }
  th { text-align: left; font-weight: 600; background: var(--st-secondary-background-color); }
  thead th { height: 56px; text-align: center; }
  th:first-child { text-align: left; padding-left: 12px; }
  small { font-size: 12px; font-weight: 400; opacity: 0.85; }
  td { text-align: center; white-space: nowrap; cursor: pointer; border-left: 1px solid var(--st-border-color); }
  td:hover { background: var(--st-secondary-background-color); }
  td:focus-visible, td[aria-selected=true] { outline: 3px solid var(--st-primary-color); outline-offset: -3px; }
  .rv-same b { color: var(--rv-good); }
  .rv-differs { background: color-mix(in srgb, var(--rv-key) 14%, transparent); b { color: var(--rv-key); } }
  .rv-refused { background: color-mix(in srgb, var(--rv-quiet) 16%, transparent); b { color: var(--rv-ink); } }
  .rv-not-known b { color: var(--rv-quiet); }
}
@media (max-width: 760px) {
  .rv-verdicts {
    td span, small { display: none; }
    td { padding: 0; width: 36px; min-width: 34px; font-size: 14px; }
    tbody th { font-size: 13px; line-height: 1.15; height: 40px; padding: 0 4px 0 8px; }
    thead th { height: 150px; padding: 6px 0; vertical-align: bottom; }
    thead th:not(:first-child) span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; font-size: 13px; }
  }
}
`);
