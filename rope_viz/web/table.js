// A table of numbers or text: sorted by a click on a column head, filtered if long, copied and downloaded whole.
// picture.js requests it, rope_viz/picture/wire_format.py packs it.

import { addStyle, element } from "./element.js";
import { text } from "./texts.js";
import { fillToolbar } from "./tools.js";

const LONG = 20, LONG_TEXT = 60;

// Format with six significant digits, no trailing zeros.
const formatCell = (value) => (value === null ? "" : typeof value === "boolean" ? text(value ? "export.yes" : "export.no") : typeof value === "number" ? (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)))) : String(value));

// Make the text of a cell, and its footnotes as links (rope_viz/figures/words.py, navigation.js).
const makeContents = (words) => words.split(/\[((?:\\.|[^\\\]])*)\]\(#source\)/).map((part, index) => (index % 2 ? element("a", { href: "#source", textContent: part.replace(/\\(.)/g, "$1") }) : part));

function buildTable(place) {
  const { root } = place;
  root.innerHTML = `<div class="rv-sheet" role="region" tabindex="0"><table><thead><tr></tr></thead><tbody></tbody></table></div>
    <div class="rv-tools" role="toolbar" aria-label="${text("picture.table_tools")}"><div class="rv-space"></div>
    <label>${text("picture.filter")} <input type="search" autocomplete="off" spellcheck="false"></label></div>`;
  const state = { place, sheet: root.querySelector(".rv-sheet"), head: root.querySelector("tr"), body: root.querySelector("tbody"), field: root.querySelector("input"), sortColumn: null, isDescending: false };
  fillToolbar(root.querySelector(".rv-tools"), place);
  state.field.addEventListener("input", () => fillRows(state));
  return state;
}

function fillRows(state) {
  const { columns, words } = state.message, names = Object.keys(columns), values = Object.values(columns);
  const query = state.field.value.trim().toLowerCase();
  let rows = [...(values[0] ?? []).keys()];
  if (query) rows = rows.filter((row) => values.some((column) => formatCell(column[row]).toLowerCase().includes(query)));
  const column = columns[state.sortColumn];
  if (column) {
    const compareRows = (a, b) => (column[a] === null) - (column[b] === null) || (typeof column[a] === "number" && typeof column[b] === "number" ? column[a] - column[b] : String(column[a]).localeCompare(String(column[b]), "en", { numeric: true }));
    rows.sort((a, b) => (state.isDescending ? compareRows(b, a) : compareRows(a, b)));
  }
  const numeric = values.map((each) => each.every((value) => value === null || typeof value === "number"));
  state.head.replaceChildren(...names.map((name, index) => {
    const cell = element("th", { scope: "col", tabIndex: 0, className: numeric[index] ? "rv-number" : "", textContent: name, title: text("picture.sort") });
    cell.ariaSort = name !== state.sortColumn ? "none" : state.isDescending ? "descending" : "ascending";
    const sortRows = () => {
      state.isDescending = state.sortColumn === name && !state.isDescending;
      state.sortColumn = state.sortColumn === name && !state.isDescending ? null : name;
      fillRows(state);
      state.head.children[index].focus();
    };
    cell.addEventListener("click", sortRows);
    cell.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sortRows();
    });
    return cell;
  }));
  const makeCell = (row) => (column, index) => {
    const words = formatCell(column[row]);
    return element("td", { className: numeric[index] ? "rv-number" : words.length > LONG_TEXT ? "rv-long" : /\S{16}/.test(words) ? "rv-break" : "" }, ...makeContents(words));
  };
  state.body.replaceChildren(...rows.map((row) => element("tr", {}, ...values.map(makeCell(row)))));
  state.sheet.classList.toggle("rv-words", words);
}

export default function showTable(place, message) {
  const state = (place.root.__table ??= buildTable(place));
  state.message = message;
  state.sheet.setAttribute("aria-label", message.title);
  state.sheet.style.maxHeight = message.words ? "" : `${place.data.height}px`;
  state.field.parentElement.hidden = (Object.values(message.columns)[0] ?? []).length <= LONG;
  fillRows(state);
  place.root.dataset.drawn = String(Number(place.root.dataset.drawn ?? 0) + 1);
}

addStyle(`
.rv-sheet {
  overflow: auto; border: 1px solid var(--st-border-color); border-radius: 8px; font-size: 14px;
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
  th, td { height: 35px; padding: 0 12px; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--st-border-color); box-sizing: border-box; }
  tr:last-child td { border-bottom: 0; }
  th { position: sticky; top: 0; background: var(--st-secondary-background-color); font-weight: 600; cursor: pointer; }
  th:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: -2px; }
  th[aria-sort=ascending]::after { content: " ↑"; }
  th[aria-sort=descending]::after { content: " ↓"; }
  .rv-number { text-align: right; }
  .rv-long { white-space: normal; min-width: 260px; padding-block: 6px; overflow-wrap: anywhere; }
}
.rv-words {
  td { white-space: normal; padding: 8px 12px; vertical-align: top; }
  th { white-space: normal; }
  .rv-break:last-child { overflow-wrap: anywhere; }
  .rv-long { min-width: 0; }
  @media (max-width: 640px) { td, th { padding-inline: 8px; } }
}
.rv-table {
  label { font-size: 13px; display: flex; gap: 6px; align-items: center; }
  label[hidden] { display: none; }
  input { font: inherit; color: inherit; min-height: 30px; width: 9em; padding: 0 8px; box-sizing: border-box; background: transparent; border: 1px solid var(--st-border-color); border-radius: 6px; }
  @media (pointer: coarse), (max-width: 640px) { input { min-height: 40px; } }
}
`);
