// The sliders of a widget: one for each number of its embedding. widget.js shows them below the picture.

import { addStyle, element } from "./element.js";
import { guardSlider } from "./touch.js";
import { countSteps, formatValue, readThumb, toTrack } from "./track.js";

// Read a number of an embedding by its name, such as "base" or "scaling.factor".
const readNumber = (spec, name) => name.split(".").reduce((part, key) => part[key], spec);

// Return an embedding with another number of this name.
export function withNumber(spec, name, value) {
  const [first, rest] = name.split(".");
  return { ...spec, [first]: rest ? { ...spec[first], [rest]: value } : value };
}

// Show a slider for each row of `rows`. `onMove(name, value)` runs while one is dragged, `onRelease()` once it is released.
// Return a function that sets the sliders to an embedding; the thumb of `held` stays where it is.
export function fillSliders(root, rows, onMove, onRelease) {
  const sliders = rows.map((data) => {
    const range = element("input", { type: "range", min: 0, max: countSteps(data), step: 1, title: data.help }), output = element("output");
    const slider = { data, range, output, value: NaN };
    let isKeyDown = false;
    guardSlider(range);
    range.dataset.do = data.name;
    range.addEventListener("keydown", () => (isKeyDown = true));
    range.addEventListener("keyup", () => (isKeyDown = false));
    range.addEventListener("input", () => {
      slider.value = readThumb(slider, isKeyDown);
      writeValue(slider);
      onMove(data.name, slider.value);
    });
    range.addEventListener("change", onRelease);
    root.append(element("label", {}, element("span", { textContent: data.label }), output, range));
    return slider;
  });
  return (spec, held = "") => sliders.forEach((slider) => {
    slider.value = readNumber(spec, slider.data.name);
    if (slider.data.name !== held) slider.range.value = Math.round(Math.min(1, Math.max(0, toTrack(slider.data, slider.value))) * slider.range.max);
    writeValue(slider);
  });
}

function writeValue({ data: { unit }, range, output, value }) {
  output.textContent = formatValue(value, unit);
  range.setAttribute("aria-valuetext", `${output.textContent} ${unit}`.trim());
}

addStyle(`
.rv-sliders { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(200px, 100%), 1fr)); gap: 8px 20px; padding: 10px 0 4px; font-size: 14px; }
.rv-sliders:empty { display: none; }
.rv-sliders label { display: grid; grid-template-columns: 1fr auto; margin: 0; font-weight: 400; }
.rv-sliders output { font-variant-numeric: tabular-nums; padding: 0; }
.rv-sliders input { grid-column: 1 / -1; width: 100%; height: 24px; margin: 0; accent-color: var(--st-primary-color); }
@media (pointer: coarse), (max-width: 640px) { .rv-sliders input { height: 40px; } }
`);
