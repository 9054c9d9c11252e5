// Touch on a slider: only a sideways drag moves it. A vertical swipe scrolls the page and a tap does nothing, so that
// scrolling does not change the model by accident.

const FAR = 6, TAP = 700;

export function guardSlider(range) {
  let from = null, slides = false, before = "", ended = -Infinity;
  range.style.touchAction = "pan-y";
  const onStart = ({ touches: [touch] }) => ([from, slides, before] = [{ x: touch.clientX, y: touch.clientY }, false, range.value]);
  const onEnd = () => {
    if (!slides) range.value = before;
    [from, ended] = [null, slides ? -Infinity : performance.now()];
  };
  range.addEventListener("touchstart", onStart, { passive: true });
  range.addEventListener("touchmove", ({ touches: [touch] }) => {
    if (!from || slides) return;
    const [across, along] = [Math.abs(touch.clientX - from.x), Math.abs(touch.clientY - from.y)];
    if (Math.max(across, along) < FAR) return;
    slides = across > along;
    if (!slides) from = { x: Infinity, y: 0 };
  }, { passive: true });
  range.addEventListener("touchend", onEnd);
  range.addEventListener("touchcancel", onEnd);
  // Runs before the slider's own listeners and reverts changes that are no sideways drag.
  const isReverted = () => (from !== null && !slides) || performance.now() - ended < TAP;
  for (const kind of ["input", "change"]) {
    range.addEventListener(kind, (event) => {
      if (!isReverted()) return;
      event.stopImmediatePropagation();
      range.value = before;
    }, true);
  }
  range.addEventListener("mousedown", (event) => {
    if (performance.now() - ended < TAP) event.preventDefault();
  });
  range.addEventListener("keydown", () => (ended = -Infinity));
}
