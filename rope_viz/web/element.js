// Elements, styles and colours of the page, for all other scripts.

// Make an element with these properties and children.
export function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

const styles = [];

// Add the CSS of a script to the page; call it once, while the script loads.
export function addStyle(css) {
  styles.push(css);
  document.head.append(element("style", { textContent: css }));
}

// Make an element with the CSS of all scripts, for a shadow tree, which the page's CSS does not reach.
export const makeStyle = () => element("style", { textContent: styles.join("") });

// Escape a text for use in HTML and in its attributes.
export const escapeHtml = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt()};`);

// Whether an element is on a dark page.
export function isDark(root) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(root).getPropertyValue("--st-background-color").trim() || "#ffffff";
  return parseInt(probe.fillStyle.slice(3, 5), 16) < 128;
}
