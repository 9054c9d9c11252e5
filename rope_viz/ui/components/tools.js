// The buttons under a picture that all kinds share, and the copy button.

import { drawing } from "./message.js";
import { text } from "./texts.js";

export const copyAddress = (place, form = "svg") =>
  Object.assign(copying(text("export.copy_address"), () => place.address(form, {}, true)), { title: text("export.copy_address_help") });

// Load a script on first use and run it. If it or its request fails, show `<what>_failed` with a retry button.
export async function runScript(place, what, script, run) {
  const again = () => runScript(place, what, script, run);
  try {
    place.fail(await run(await drawing(script)), again);
  } catch (error) {
    // A failed fetch is a TypeError.
    const reason = error instanceof TypeError ? text("picture.server_silent") : error.message;
    place.fail(text(`picture.${what}_failed`, { reason }), again);
  }
}

// A button that downloads the server's file of the visible range.
export function file(place, form, label, help) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: label, title: help });
  button.dataset.format = form;
  button.addEventListener("click", async () => {
    button.disabled = true;
    await runScript(place, "file", "export", ({ save, zoomed }) => save(place, form, zoomed(place)));
    button.disabled = false;
  });
  return button;
}

// The button that opens the export dialog.
export function exporting(place) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text("export.open"), title: text("export.open_help") });
  button.dataset.do = "export";
  button.setAttribute("aria-haspopup", "dialog");
  button.addEventListener("click", () => runScript(place, "dialog", "export", (script) => void script.default(place)));
  return button;
}

// A button that copies a text, read when it is pressed, and briefly shows the result.
export function copying(name, read, refusal = text("export.copy_refused")) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  button.addEventListener("click", async () => {
    button.textContent = (await copy(read())) ? text("export.copied") : refusal;
    setTimeout(() => (button.textContent = name), 1600);
  });
  return button;
}

// Without a secure context there is no clipboard API; fall back to the old command.
const copy = async (content) => (navigator.clipboard ? navigator.clipboard.writeText(content).then(() => true, () => copyByCommand(content)) : copyByCommand(content));

function copyByCommand(content) {
  const field = Object.assign(document.createElement("textarea"), { value: content });
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
