// The user's own sentence on Home and in Learn. The fragment of the address holds it, which browsers send to no server.

import { element } from "./element.js";
import { fill } from "./circle.js";

const MOST = 120, WORDS = 12; // characters and words; the ruler has room for so many words on a phone too

// One for the tab, so that Learn continues with the sentence of Home. `two` are the words whose key and query are shown.
let own = null;

// Return { words, two, problem } of a text: its printable characters without marks of direction, in words.
export function readWords(text, two = []) {
  const all = [...text.slice(0, 4 * MOST).normalize("NFC").replace(/(?![\u200c\u200d])[\p{C}\p{Z}]+/gu, " ").trim()], words = all.slice(0, MOST).join("").split(" ").filter(Boolean), shown = words.slice(0, WORDS), last = shown.length - 1;
  const [key, query] = two, isPair = Number.isInteger(key) && Number.isInteger(query) && key >= 0 && key < query && query <= last;
  return {
    words: shown, two: isPair ? [key, query] : [Math.min(1, Math.max(0, last - 1)), last],
    problem: last < 1 ? "own_few" : text.length > MOST && all.length > MOST ? "own_most" : words.length > WORDS ? "own_words" : "",
  };
}

function readAddress() {
  const values = new URLSearchParams(location.hash.slice(1)), text = values.get("words");
  if (text === null) return null;
  const found = readWords(text, (values.get("two") ?? "").split(",").map((part) => (/^\d{1,2}$/.test(part) ? Number(part) : NaN)));
  return found.words.length > 1 ? found : null;
}

// Return the own sentence, null for none, and write it into an address that lacks it: a step of the app drops fragments.
export function readSentence() {
  const found = readAddress(), write = (each) => JSON.stringify([each?.words, each?.two]);
  if (found && write(found) !== write(own)) own = found;
  if (own) writeAddress();
  return own;
}

function writeAddress() {
  const values = new URLSearchParams(location.hash.slice(1));
  values.delete("words");
  values.delete("two");
  const parts = [values.toString(), own && `words=${encodeURIComponent(own.words.join(" "))}&two=${own.two.join(",")}`].filter(Boolean), hash = parts.length ? `#${parts.join("&")}` : "";
  if (hash !== location.hash) history.replaceState(history.state, "", `${location.pathname}${location.search}${hash}`);
}

// Return the data of Home's picture with the own sentence in place of its own.
export function useSentence(data) {
  const found = readSentence();
  if (!found) return data;
  const { words, two: [key, query] } = found, slots = Math.max(data.slots[1], words.length);
  return { ...data, isOwn: true, words, start: { key, query }, slots: [Math.max(data.slots[0], slots), slots] };
}

// Make the folded form: a line for the sentence, and its words, of which one is pressed to compare it. `onChange` runs when
// the sentence is another.
export function makeSentenceForm(texts, onChange) {
  const status = element("p", { className: "rv-problem" }), field = element("input", { type: "text", value: own?.words.join(" ") ?? "", autocomplete: "off", ariaLabel: texts.own_sentence }), list = element("div", { className: "rv-choose" });
  status.setAttribute("role", "status");
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", texts.own_choose);
  field.dataset.do = "sentence";
  const report = (problem, more = "") => (status.textContent = problem ? fill(texts[problem], { most: MOST, words: WORDS }) : more);
  const change = (next) => {
    own = next;
    writeAddress();
    onChange();
  };
  // The nearer of the two compared words gives way.
  const choose = (at) => {
    const [key, query] = own.two;
    change({ ...own, two: at < key || (at < query && at - key < query - at) ? [at, query] : [key, at] });
  };
  own?.words.forEach((word, at) => {
    const node = element("button", { type: "button", className: ["rv-key", "rv-query"][own.two.indexOf(at)] ?? "", textContent: word, dir: "auto", onclick: () => choose(at) });
    node.setAttribute("aria-pressed", String(own.two.includes(at)));
    node.dataset.do = "word";
    list.append(node);
  });
  const form = element("form", { onsubmit(event) {
    event.preventDefault();
    const found = field.value.trim() ? readWords(field.value) : null;
    if (found && found.words.length < 2) return report(found.problem);
    change(found);
  } }, field, element("button", { type: "submit", textContent: texts.own_show }));
  report(own?.problem, texts.own_help);
  const summary = element("summary", { textContent: texts.own_sentence });
  summary.dataset.do = "own";
  return element("details", { className: "rv-own", open: own !== null }, summary, form, list, status);
}

// Shorten a word for a chip.
export const shorten = (word) => { const signs = [...word]; return signs.length > 13 ? `${signs.slice(0, 12).join("")}…` : word; };

export const SENTENCE_STYLE = `
  .rv-own { margin-top: 4px; border: 0; font-size: 15px; line-height: 22px; }
  .rv-own summary { display: inline-flex; align-items: center; min-height: 40px; padding: 0; cursor: pointer; color: var(--query); text-decoration: underline; text-underline-offset: 3px; }
  .rv-own form { display: flex; gap: 8px; }
  .rv-own input { flex: 1; min-width: 0; height: 40px; padding: 0 12px; box-sizing: border-box; font: inherit; color: inherit; background: var(--background); border: 1px solid var(--rule); border-radius: 8px; }
  .rv-own button { min-height: 40px; max-width: 100%; padding: 0 12px; font: inherit; color: inherit; background: transparent; border: 1px solid var(--rule); border-radius: 8px; cursor: pointer; overflow: hidden; text-overflow: ellipsis; }
  .rv-own .rv-choose { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 8px; }
  .rv-own .rv-choose button { border-color: transparent; padding: 0 8px; }
  .rv-own .rv-choose [aria-pressed=true] { font-weight: 600; color: var(--background) !important; }
  .rv-own .rv-choose .rv-key { background: var(--key); }
  .rv-own .rv-choose .rv-query { background: var(--query); }
  .rv-own .rv-problem { margin: 4px 0 0; color: var(--plain); }
`;
