// The style of pictures. Only components get Streamlit's colours: they are copied to the document.

const COLOURS = ["background-color", "border-color", "font", "primary-color", "red-text-color", "secondary-background-color", "text-color"];
const sheet = document.head.appendChild(document.createElement("style"));
export let theme = "";

export function copyColours(node) {
  const style = getComputedStyle(node), now = COLOURS.map((name) => `--st-${name}: ${style.getPropertyValue(`--st-${name}`)}`).join("; ");
  if (now === theme) return;
  theme = now;
  sheet.textContent = `${STYLE}.rv-picture { ${theme} }`;
}

const STYLE = `
.rv-picture { position: relative; font-family: var(--st-font); color: var(--st-text-color); }
.rv-failed {
  position: absolute; z-index: 2; inset: 8px 8px auto; display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; justify-content: space-between; padding: 10px 14px; font-size: 14px;
  color: var(--st-text-color); background: var(--st-secondary-background-color); border: 1px solid var(--st-border-color); border-radius: 8px;
}
:is(.rv-failed, .rv-tools) button {
  font: inherit; font-size: 13px; line-height: 1; min-height: 30px; min-width: 40px; padding: 0 10px; cursor: pointer; box-sizing: border-box;
  color: var(--st-text-color); background: transparent; border: 1px solid var(--st-border-color); border-radius: 6px;
}
:is(.rv-failed, .rv-tools) button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.rv-picture :is(button, input, select, [tabindex="0"]):focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media (pointer: coarse), (max-width: 640px) { :is(.rv-failed, .rv-tools, .rv-bar) button:is(button, [data-do][data-do]) { min-height: 40px; } }
`;
