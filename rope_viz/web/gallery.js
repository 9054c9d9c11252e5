// The gallery: cards by door, each a link with a thumbnail that loads as it comes into view.

import { addStyle, element } from "./element.js";
import { makeCopyButton } from "./tools.js";

const root = document.documentElement, here = new URL(".", import.meta.url), version = here.pathname.split("/").at(-2);
const makeAddress = (picture, form, query = "") => new URL(`../picture/${picture}.${form}${query ? `?${query}` : ""}`, here).href;

// What is copied for a card, by the name of its button.
const CONTENTS = {
  address: ({ picture, asked }) => makeAddress(picture, "svg", asked),
  embed: ({ picture, asked, title }) => `<img src="${makeAddress(picture, "svg", asked)}" alt="${title}">`,
  command: ({ picture, asked }) => `rope-viz figure ${asked ? `'${picture}?model=llama-3.1-8b&${asked}'` : `${picture} llama-3.1-8b`} -o ${picture.replace("/", "-")}.svg`,
  python: ({ picture, asked }) => `from rope_viz.reports.draw import figure\n\nwith open("${picture.replace("/", "-")}.svg", "wb") as file:\n    file.write(figure("${asked ? `${picture}?${asked}` : picture}"))\n`,
};

function makeCard(one, { texts, width, height, is_index: isIndex }) {
  const image = element("img", { loading: "lazy", alt: "", width, height });
  image.addEventListener("load", () => image.classList.add("rv-loaded"));
  let retries = 3;
  image.addEventListener("error", () => retries-- > 0 && setTimeout(() => image.request(), 5000)); // the server may be busy
  image.request = () => (image.src = makeAddress(one.picture, "png", `${one.thumbnail}&theme=${root.dataset.theme === "dark" ? "dark" : "light"}&v=${version}`));
  const link = element("a", { href: `./${one.page}` },
    element("span", { className: "rv-thumb" }, image), element("b", { textContent: one.title }), element("span", { textContent: one.about }));
  link.dataset.opens = one.query;
  if (isIndex) {
    link.append(element("small", { textContent: one.note }));
    image.request();
    return element("li", {}, link);
  }
  const actions = element("div", { className: "rv-copies", role: "group", ariaLabel: one.actions },
    ...Object.entries(CONTENTS).map(([name, content]) => Object.assign(makeCopyButton(texts[`copy.${name}`], () => content(one)), { className: name })));
  const node = element("li", {}, link, actions);
  node.words = `${one.title} ${one.about} ${one.picture}`.toLowerCase();
  image.request();
  return node;
}

function buildGallery(place, data) {
  const { texts, groups } = data;
  const search = element("input", { type: "search", placeholder: texts.find, ariaLabel: texts.find });
  const none = element("p", { textContent: texts.none, hidden: true, role: "status" });
  const sections = groups.map(({ door, title, count, cards }) => {
    const list = element("ul", {}, ...cards.map((one) => makeCard(one, data)));
    const node = element("section", {}, element("h2", {}, title, element("small", { textContent: count })), list);
    return Object.assign(node, { door, list });
  });
  let shown = "";
  const applyFilter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const section of sections) {
      for (const node of section.list.children) node.hidden = !words.every((word) => node.words.includes(word));
      section.hidden = (shown && section.door !== shown) || ![...section.list.children].some((node) => !node.hidden);
    }
    none.hidden = sections.some((section) => !section.hidden);
  };
  const total = groups.reduce((sum, { cards }) => sum + cards.length, 0);
  const doors = [["", texts.all, total], ...groups.map(({ door, title, cards }) => [door, title, cards.length])].map(([door, title, count]) => {
    const button = element("button", { type: "button", textContent: `${title} ${count}`, ariaPressed: String(!door) });
    button.dataset.do = "door";
    button.addEventListener("click", () => {
      shown = door;
      for (const other of doors) other.ariaPressed = String(other === button);
      applyFilter();
    });
    return button;
  });
  search.addEventListener("input", applyFilter);
  place.replaceChildren(element("div", { className: "rv-filter" }, element("div", { role: "group", ariaLabel: texts.doors }, ...doors), search), none, ...sections);
}

export default function render({ parentElement, data }) {
  const place = parentElement.querySelector(".rv-gallery");
  if (place.isBuilt) return;
  place.isBuilt = true;
  if (data.is_index) place.append(element("ul", {}, ...data.groups[0].cards.map((one) => makeCard(one, data))));
  else buildGallery(place, data);
  new MutationObserver(() => place.querySelectorAll("img").forEach((image) => image.request())).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
}

addStyle(`
.rv-gallery {
  font: 15px var(--st-font); color: var(--st-text-color);
  [hidden] { display: none !important; }
  .rv-filter { display: flex; flex-wrap: wrap; gap: 12px; justify-content: space-between; }
  .rv-filter [role=group] { display: flex; flex-wrap: wrap; }
  .rv-filter :is(button, input) { font: inherit; color: inherit; min-height: 40px; padding: 0 12px; background: transparent; border: 1px solid var(--st-border-color); border-radius: 8px; }
  .rv-filter button { cursor: pointer; margin-right: -1px; border-radius: 0; }
  .rv-filter button[aria-pressed=true] { position: relative; color: var(--st-primary-color); border-color: var(--st-primary-color); font-weight: 600; }
  h2 { font-size: 1.2rem; margin: 28px 0 12px; padding: 0; }
  h2 small { font: 14px var(--st-font); margin-left: 10px; opacity: 0.85; }
  ul { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(224px, 100%), 1fr)); gap: 24px 20px; }
  li { position: relative; margin: 0; }
  a { display: block; color: inherit; text-decoration: none; }
  a b { display: block; margin-top: 8px; font-weight: 600; }
  a > b + span { display: block; font-size: 14px; opacity: 0.85; }
  a > small { display: block; margin-top: 4px; font-size: 13px; font-weight: 600; }
  .rv-thumb { display: block; aspect-ratio: 224 / 146; border: 1px solid var(--st-border-color); border-radius: 8px; overflow: hidden; background: var(--rv-panel); }
  img { width: 100%; height: 100%; display: block; opacity: 0; }
  img.rv-loaded { opacity: 1; }
  :is(li:hover, li:focus-within) .rv-thumb { border-color: var(--st-primary-color); }
  :is(a, button, input):focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
  .rv-copies { display: flex; flex-wrap: wrap; gap: 4px; visibility: hidden; margin-top: 4px; }
  :is(li:hover, li:focus-within) .rv-copies { visibility: visible; }
  .rv-copies button { font: 600 13px var(--st-font); min-height: 28px; padding: 0 6px; color: var(--st-primary-color); background: transparent; border: 0; cursor: pointer; }
}
@media (hover: none) { .rv-gallery .rv-copies { visibility: visible; button { min-height: 40px; } } }
`);
