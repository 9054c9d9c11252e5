// The dialog that exports a picture for a paper: size, type, colours, labels and ranges, with a preview of the whole figure. Its
// fields are declared in rope_viz/figures/files/style.py and have the same names in the address.

import { addStyle, element } from "./element.js";
import { text } from "./texts.js";
import { makeCommand, makeCopyButton } from "./tools.js";
import { COLOUR, HIDE, LABEL, PARAMETERS, PRESETS } from "./looks.js";
import { save } from "./video.js";

const GROUPS = {
  size: ["preset", "width", "height", "dpi"],
  type: ["font", "font_size", "title"],
  colours: ["theme", "grey", "legend"],
  axes: ["xtitle", "ytitle", "xmin", "xmax", "xscale", "ymin", "ymax", "yscale"],
};
const DEFAULTS = { width: "85mm", height: "60mm", dpi: "288", font: "sans", font_size: "13px", title: text("export.no") };
const FORMS = ["pdf", "svg", "png", "html", "csv", "json"];
const WAIT = 350, PER_MM = 96 / 25.4;
// Size and style carry over to the next picture; labels and ranges do not.
const RANGES = GROUPS.axes.slice(2);
const SHARED = [...GROUPS.size, ...GROUPS.type, ...GROUPS.colours];
let shared = {};

// Read the ranges that the user has zoomed to, in axis values; none for categories and for several panels.
export function readRanges({ message, memory }) {
  const layout = message?.figure?.layout ?? {}, out = {};
  for (const [axis, range] of Object.entries(memory.zoomed ?? {})) {
    const letter = axis[0], own = layout[axis];
    if (axis.length > 5 || !own || own.type === "category" || (letter === "x" && message.zooms) || (layout.meta ?? {}).linked) continue;
    const ends = range.map((end) => (own.type === "log" ? 10 ** end : end)).sort((a, b) => a - b);
    [out[`${letter}min`], out[`${letter}max`]] = ends.map((end) => String(Number(end.toPrecision(12))));
  }
  return out;
}

// Numeric ranges and scales are also stored in the page's own link, so that the link reproduces them; history.js keeps
// them when the server writes the rest.
const makeQueryKey = (place) => `axes-${place.data.picture.replace("/", "-")}`;

function readLink(place) {
  const parts = (new URLSearchParams(location.search).get(makeQueryKey(place)) ?? "").split(";").map((part) => part.split(":"));
  return Object.fromEntries(parts.filter(([key, value]) => RANGES.includes(key) && value));
}

function writeLink(place, look) {
  const query = location.search.slice(1).split("&").filter((part) => part && !part.startsWith(`${makeQueryKey(place)}=`));
  const parts = RANGES.filter((key) => look[key] && !/[:;]/.test(look[key])).map((key) => `${key}:${encodeURIComponent(look[key])}`);
  if (parts.length) query.push(`${makeQueryKey(place)}=${parts.join(";")}`);
  const to = `${location.pathname}${query.length ? `?${query.join("&")}` : ""}${location.hash}`;
  if (to !== location.pathname + location.search + location.hash) history.replaceState(history.state, "", to);
}

// Download a file; return the server's sentence if it refuses, else nothing.
export async function downloadFile(place, form, look) {
  const answer = await place.fetchFile(place.makeAddress(form, look));
  if (!answer.ok) return answer.text();
  const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? `${place.data.picture.replace("/", "-")}.${form}`;
  save(await answer.blob(), name);
  return "";
}

function makeField(key, { label, help, options }, value = "") {
  const id = `rv-export-${key}`, title = help;
  const input = options.length
    ? element("select", { id, name: key, title }, ...["", ...options.filter(Boolean)].map((option) => element("option", { value: option, textContent: option || text("export.default") })))
    : element("input", { id, name: key, title, type: "text", autocomplete: "off", spellcheck: false, placeholder: DEFAULTS[key] ?? "" });
  input.value = value;
  return element("label", {}, element("span", { textContent: label }), input);
}

// The fields of one line: its label, its colour and whether it is left out.
function makeLineFields(line, usualColour, own) {
  const label = makeField(LABEL + line, { label: line, help: text("export.line_label_help"), options: [] }, own[LABEL + line]);
  const colour = element("input", { type: "color", name: COLOUR + line });
  colour.value = own[COLOUR + line] ?? usualColour;
  colour.dataset.usual = usualColour.toLowerCase();
  const hide = element("input", { type: "checkbox", name: HIDE + line, value: "yes", checked: Boolean(own[HIDE + line]) });
  return element("div", { className: "rv-line" }, label, element("label", {}, element("span", { textContent: text("export.line_colour") }), colour), element("label", { title: text("export.line_hide_help", { line }) }, hide, element("span", { textContent: text("export.line_hide") })));
}

// What a field adds to the address, "" for its default.
const readField = ({ type, value, checked, dataset }) => (type === "checkbox" ? (checked ? value : "") : value === dataset.usual ? "" : value.trim());

function findColour({ message }, line) {
  const trace = (message?.figure?.data ?? []).find(({ name, legendgroup }) => name === line || legendgroup === line);
  const found = trace?.line?.color ?? trace?.marker?.color;
  return /^#[0-9a-f]{6}$/i.test(found) ? found : "#000000";
}

function openDialog(place) {
  const title = element("h2", { id: "rv-export-title", textContent: text("export.title") });
  const form = element("form", { method: "dialog", noValidate: true });
  const own = { ...shared, ...readRanges(place), ...readLink(place), ...place.memory.look };
  for (const [name, keys] of Object.entries(GROUPS)) {
    form.append(element("fieldset", { className: `rv-of-${name}` }, element("legend", { textContent: text(`export.groups.${name}`) }), ...keys.map((key) => makeField(key, PARAMETERS[key], own[key]))));
  }
  const lines = place.message?.lines ?? [];
  if (lines.length) {
    const fields = lines.map((line) => makeLineFields(line, findColour(place, line), own));
    form.append(element("fieldset", { className: "rv-of-lines" }, element("legend", { textContent: text("export.lines") }), ...fields));
  }
  const image = element("img", { alt: "" });
  const frame = element("div", { className: "rv-preview", tabIndex: 0, role: "region", ariaLabel: text("export.preview") }, image);
  const status = element("p", { className: "rv-size", role: "status" });
  const address = element("input", { type: "text", readOnly: true, name: "address", id: "rv-export-address" });
  const makeButton = (label, act, data = {}) => {
    const node = element("button", { type: "button", textContent: label });
    Object.assign(node.dataset, data);
    node.addEventListener("click", act);
    return node;
  };
  const files = FORMS.map((kind) => makeButton(kind.toUpperCase(), () => state.save(kind), { save: kind }));
  const reset = makeButton(text("export.reset"), () => state.reset()), close = makeButton(text("export.close"), () => dialog.close());
  const bar = element("div", { className: "rv-tools" }, element("span", { textContent: text("export.download") }), ...files);
  const more = element("div", { className: "rv-tools" }, makeCopyButton(text("export.copy_address"), () => address.value), makeCopyButton(text("export.copy_command"), () => makeCommand(place, address.value, "pdf")),
    element("div", { className: "rv-space" }), reset, close);
  const view = element("div", { className: "rv-shown" }, status, frame, bar, element("label", {}, element("span", { textContent: text("export.address") }), address), more);
  const dialog = element("dialog", { className: "rv-export" }, title, element("div", { className: "rv-parts" }, form, view));
  dialog.setAttribute("aria-labelledby", title.id);
  const state = new ExportDialog(place, { dialog, form, image, frame, status, address, files });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => state.onInput(event.target));
  // A press outside the dialog closes it.
  dialog.addEventListener("pointerdown", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => state.close());
  for (const kind of ["keydown", "keyup", "keypress"]) dialog.addEventListener(kind, (event) => event.stopPropagation());
  place.root.append(dialog);
  dialog.showModal();
  state.update();
}

class ExportDialog {
  constructor(place, parts) {
    // Hands may move on behind the dialog: its files show what its preview shows.
    Object.assign(this, { place, ...parts, controller: null, moment: place.readMoment() });
  }

  // Read every field that is not at its default; the address contains these.
  readStyle() {
    const out = {};
    for (const field of this.form.elements) if (field.name && field.name !== "preset" && readField(field)) out[field.name] = readField(field);
    return out;
  }

  onInput({ name, value }) {
    // The preset stays selected when one of its values is changed: the others are still its own.
    if (name === "preset" && PRESETS[value]) {
      for (const key of ["width", "height", "font_size", "dpi"]) this.form.elements[key].value = PRESETS[value][key] ?? "";
    }
    clearTimeout(this.timer);
    this.dialog.dataset.state = "waiting";
    this.timer = setTimeout(() => this.update(), WAIT);
  }

  reset() {
    for (const input of this.form.elements) {
      if (input.type === "checkbox") input.checked = false;
      else if (input.name) input.value = input.dataset.usual ?? "";
    }
    this.update();
  }

  // Store the style and request the preview: the vector picture itself, at true size where it fits.
  async update() {
    const { place, dialog } = this, look = this.readStyle();
    clearTimeout(this.timer);
    place.memory.look = { ...look, preset: this.form.elements.preset.value };
    shared = Object.fromEntries(Object.entries(place.memory.look).filter(([key]) => SHARED.includes(key)));
    writeLink(place, look);
    this.controller?.abort();
    const { signal } = (this.controller = new AbortController());
    this.address.value = place.makeAddress("svg", { ...this.moment, ...look }, true);
    dialog.dataset.state = "waiting";
    try {
      const answer = await place.fetchFile(this.address.value, signal);
      if (answer.status === 503) return void (this.timer = setTimeout(() => this.update(), 1000));
      if (!answer.ok) return this.showProblem(await answer.text());
      this.showPreview(await answer.blob(), look);
    } catch (error) {
      if (error.name !== "AbortError") this.showProblem(text("export.no_answer_retry"));
    }
  }

  showPreview(blob, look) {
    URL.revokeObjectURL(this.image.src);
    this.image.src = URL.createObjectURL(blob);
    this.image.alt = this.place.message?.title ?? "";
    this.image.onload = () => {
      const { naturalWidth: wide, naturalHeight: high } = this.image;
      const [width_mm, height_mm] = [wide, high].map((pixels) => Math.round(pixels / PER_MM));
      this.status.textContent = text("export.size", { width: wide, height: high, width_mm, height_mm });
      this.allowSaving(true, "shown");
    };
    this.frame.classList.toggle("rv-clear", look.theme === "transparent");
    this.frame.classList.toggle("rv-dark", look.theme === "dark");
  }

  showProblem(sentence) {
    this.status.textContent = sentence;
    this.allowSaving(false, "refused");
  }

  allowSaving(can, state) {
    this.frame.classList.toggle("rv-old", !can);
    for (const button of this.files) button.disabled = !can;
    this.dialog.dataset.state = state;
  }

  async save(form) {
    const problem = await downloadFile(this.place, form, { ...this.moment, ...this.readStyle() }).catch(() => text("export.no_answer"));
    if (problem) this.status.textContent = problem;
  }

  close() {
    clearTimeout(this.timer);
    this.controller?.abort();
    URL.revokeObjectURL(this.image.src);
    this.dialog.remove();
  }
}

export default openDialog;

addStyle(`
.rv-export {
  width: min(1180px, calc(100vw - 24px)); max-width: none; max-height: calc(100dvh - 24px); box-sizing: border-box; padding: 16px 20px; overflow: auto; overscroll-behavior: contain;
  font-family: var(--st-font); font-size: 14px; color: var(--st-text-color); background: var(--st-background-color); border: 1px solid var(--st-border-color); border-radius: 12px;
  h2 { margin: 0 0 8px; font-size: 18px; padding: 0; }
  .rv-parts { display: grid; grid-template-columns: 300px minmax(0, 1fr); gap: 20px; align-items: start; }
  fieldset { display: grid; grid-template-columns: 1fr 1fr; gap: 8px 10px; border: 0; margin: 0 0 10px; padding: 0; min-width: 0; }
  .rv-of-axes { grid-template-columns: repeat(6, 1fr); label { grid-column: span 2; } label:nth-of-type(-n + 2) { grid-column: span 3; } }
  .rv-of-lines { grid-template-columns: 1fr; }
  .rv-line { display: grid; grid-template-columns: minmax(0, 1fr) 52px auto; gap: 8px; align-items: end; }
  .rv-line label:last-child { display: flex; align-items: center; gap: 4px; min-height: 32px; }
  .rv-line input[type=color] { padding: 2px; }
  .rv-line input[type=checkbox] { width: 18px; min-height: 18px; margin: 0; }
  input::placeholder { color: inherit; opacity: 0.45; }
  fieldset legend { font-size: 13px; font-weight: 600; padding: 0 0 4px; }
  label { display: grid; gap: 2px; font-size: 13px; min-width: 0; }
  label span { opacity: 0.85; overflow-wrap: anywhere; }
  :is(input, select) { font: inherit; font-size: 14px; color: inherit; width: 100%; min-height: 32px; padding: 0 8px; box-sizing: border-box; background: var(--st-background-color); border: 1px solid var(--st-border-color); border-radius: 6px; }
  option { color: var(--st-text-color); background: var(--st-background-color); }
  .rv-preview { overflow: hidden; min-height: 160px; border: 1px solid var(--st-border-color); border-radius: 8px; background: #fff; }
  .rv-preview img { display: block; max-width: 100%; max-height: 60vh; margin: 0 auto; }
  .rv-preview.rv-old img { opacity: 0.3; }
  .rv-preview.rv-dark { background: #111; }
  .rv-preview.rv-clear { background: repeating-conic-gradient(#ddd 0 25%, #fff 0 50%) 0 0 / 16px 16px; }
  .rv-size { margin: 0 0 6px; min-height: 1.4em; font-size: 13px; }
  .rv-tools { margin: 8px 0; }
  @media (max-width: 760px) {
    padding: 12px;
    .rv-parts { grid-template-columns: minmax(0, 1fr); }
    .rv-shown { grid-row: 1; }
    .rv-preview img { max-height: 36vh; }
  }
  @media (pointer: coarse), (max-width: 760px) { :is(input, select) { min-height: 40px; font-size: 16px; } }
}
.rv-export::backdrop { background: #0007; }
`);
