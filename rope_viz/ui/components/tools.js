// The buttons under a picture that all kinds share, and the copy button.

import { drawing } from "./message.js";

export const copyAddress = (place, form = "svg") =>
  Object.assign(copying("Copy address", () => place.address(form)), { title: "The address of this picture, for a document" });

// Load a script on first use and run it. If it or its request fails, say so with a retry button.
export async function brought(place, what, script, does) {
  const again = () => brought(place, what, script, does);
  try {
    place.fail(await does(await drawing(script)), again);
  } catch (error) {
    // A failed fetch is a TypeError.
    place.fail(`${what} did not come: ${error instanceof TypeError ? "no answer from the server" : error.message}.`, again);
  }
}

// A button that downloads the server's file of the visible range.
export function file(place, form, text, help) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text, title: help });
  button.dataset.format = form;
  button.addEventListener("click", async () => {
    button.disabled = true;
    await brought(place, "The file", "export", ({ save, zoomed }) => save(place, form, zoomed(place)));
    button.disabled = false;
  });
  return button;
}

// The button that opens the export dialog.
export function exporting(place) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Export …", title: "A file for a paper: size, type, labels, ranges" });
  button.dataset.do = "export";
  button.setAttribute("aria-haspopup", "dialog");
  button.addEventListener("click", () => brought(place, "The dialog", "export", (script) => void script.default(place)));
  return button;
}

// A button that copies a text, read when it is pressed, and briefly shows the result.
export function copying(name, text, refusal = "Not allowed here") {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text())) ? "Copied" : refusal;
    setTimeout(() => (button.textContent = name), 1600);
  });
  return button;
}

// Without a secure context there is no clipboard API; fall back to the old command.
const copied = async (text) => (navigator.clipboard ? navigator.clipboard.writeText(text).then(() => true, () => byHand(text)) : byHand(text));

function byHand(text) {
  const field = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  return copied;
}

document.head.append(Object.assign(document.createElement("style"), { textContent: `
.rv-tools { display: flex; flex-wrap: wrap; gap: 4px; align-items: center; padding-top: 2px; }
.rv-table .rv-tools { padding-top: 8px; }
.rv-tools .rv-space { flex: 1; }
.rv-tools span { font-size: 13px; opacity: 0.85; padding: 0 6px 0 2px; }
.rv-tools button:disabled { opacity: 0.5; }
` }));
