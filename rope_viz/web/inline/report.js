const near = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    const { data, layout } = figures[target.id];
    const changes = target.clientWidth < 560 ? (layout.meta?.narrow ?? {}) : {};
    for (const [key, value] of Object.entries(changes)) {
      layout[key] = typeof value === "object" ? { ...layout[key], ...value } : value;
    }
    target.style.height = `${layout.height}px`;
    Plotly.newPlot(target, data, layout, { responsive: true, displaylogo: false, showSendToCloud: false });
  }
}, { rootMargin: "600px" });
for (const place of Object.keys(figures)) near.observe(document.getElementById(place));
