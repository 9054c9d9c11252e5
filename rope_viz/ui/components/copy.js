// Buttons that put a text, or the address of the page, on the clipboard and say so.

export default function render({ parentElement, data }) {
  const root = parentElement.querySelector(".rv-copy");
  root.__texts = data.texts;
  if (root.childElementCount) return;
  const style = "font:inherit;font-size:14px;min-height:40px;cursor:pointer;color:var(--st-text-color);background:var(--st-background-color);"
    + "border:1px solid var(--st-border-color);border-radius:8px;width:100%";
  root.style.cssText += ";display:grid;gap:8px;font-family:var(--st-font)";
  for (const name of Object.keys(data.texts)) {
    const button = copying(name, () => root.__texts[name] ?? location.href, "Not allowed here: copy it from the address bar");
    button.style.cssText = style;
    root.append(button);
  }
}

// A button that copies a text, as it is when it is pressed, and says for a moment what came of it.
export function copying(name, text, refusal = "Not allowed here") {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text())) ? "Copied" : refusal;
    setTimeout(() => (button.textContent = name), 1600);
  });
  return button;
}

// Without a secure context there is no clipboard API; the old command still works there.
const copied = async (text) => (navigator.clipboard ? navigator.clipboard.writeText(text).then(() => true, () => byHand(text)) : byHand(text));

function byHand(text) {
  const field = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  return copied;
}
