// What stands around every page: links inside the app stay in the tab and keep the session, wherever in a text they are.
// Nothing of it depends on a node: it listens on the document.

const root = new URL("../../", import.meta.url);
let component = null;

// The page that an address of the app names, with its query; null for any other address.
function inside(address) {
  const url = new URL(address, location.href);
  if (url.origin !== location.origin || url.hash && url.pathname === location.pathname && url.search === location.search) return null;
  // A text says /rotation, wherever the app stands.
  const path = url.pathname.startsWith(root.pathname) ? url.pathname.slice(root.pathname.length) : url.pathname.slice(1);
  const page = path.replace(/\/$/, "") || component.data.first;
  return component.data.pages.includes(page) ? { page, url } : null;
}

// For who opens it beside: the same place with the same choice.
function complete(anchor) {
  const found = inside(anchor.href);
  if (!found || anchor.closest('[data-testid="stPageLink"], nav, header')) return;
  const { page, url } = found;
  const query = new URLSearchParams(url.search || component.data.query);
  const to = new URL(page === component.data.first ? "" : page, root);
  to.search = query.toString();
  to.hash = url.hash;
  if (anchor.dataset.inside !== to.href || anchor.href !== to.href || anchor.target) {
    Object.assign(anchor.dataset, { inside: to.href, page, query: url.search, anchor: url.hash });
    anchor.href = to.href;
    anchor.removeAttribute("target");
  }
}

const completeAll = () => document.querySelectorAll("main a[href], [data-testid=stSidebar] a[href]").forEach(complete);

// In the capturing phase: before the page's own handlers.
document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[data-inside]");
  if (!anchor || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const { page, query, anchor: hash } = anchor.dataset;
  if (hash) sessionStorage.setItem("rope-viz.at", hash.slice(1));
  component.setTriggerValue("go", { page, query: Object.fromEntries(new URLSearchParams(query)) });
}, true);

export default function render(given) {
  const first = !component;
  component = given;
  if (first) new MutationObserver(completeAll).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["href", "target"] });
  // What the query of a link says may have changed.
  document.querySelectorAll("a[data-inside]").forEach((anchor) => {
    const { page, query, anchor: hash } = anchor.dataset;
    anchor.href = new URL(`${page === given.data.first ? "" : page}${query}${hash}`, root).href;
  });
  completeAll();
}
