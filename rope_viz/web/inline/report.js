const dark = matchMedia("(prefers-color-scheme: dark)"), drawn = new Set();
// Each colour of a light figure has one dark twin.
const recolour = (figure) => JSON.parse(JSON.stringify(figure).replace(/#[0-9A-Fa-f]{6}/g, (hex) => twins[hex.toUpperCase()] ?? hex));
function draw(target) {
  drawn.add(target);
  const { data, layout } = dark.matches ? recolour(figures[target.id]) : structuredClone(figures[target.id]);
  const changes = target.clientWidth < 560 ? (layout.meta?.narrow ?? {}) : {};
  for (const [key, value] of Object.entries(changes)) {
    layout[key] = typeof value === "object" ? { ...layout[key], ...value } : value;
  }
  target.style.height = `${layout.height}px`;
  Plotly.newPlot(target, data, layout, { responsive: true, displaylogo: false, showSendToCloud: false });
}
dark.addEventListener("change", () => drawn.forEach(draw));
const near = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    draw(target);
  }
}, { rootMargin: "600px" });
for (const place of Object.keys(figures)) near.observe(document.getElementById(place));
