// Make an element with these properties and children.
export function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// Add a script's CSS to the page; call it once, while the script loads.
export const addStyle = (css) => document.head.append(element("style", { textContent: css }));
