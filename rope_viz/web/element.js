// Elements, styles and colours of the page, for all other scripts.

// Make an element with these properties and children.
export function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// Add the CSS of a script to the page; call it once, while the script loads.
export const addStyle = (css) => document.head.append(element("style", { textContent: css }));

// Escape a text for use in HTML and in its attributes.
export const escapeHtml = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt()};`);

// Whether an element is on a dark page.
export function isDark(root) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(root).getPropertyValue("--st-background-color").trim() || "#ffffff";
  return parseInt(probe.fillStyle.slice(3, 5), 16) < 128;
}
