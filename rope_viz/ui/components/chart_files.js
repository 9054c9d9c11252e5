// The downloads of a chart, made in the browser; loaded with the first of them.

function save(content, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A spreadsheet runs what begins like a formula; a reader's own word may, so it gets an apostrophe in front.
const quote = (value) => {
  const text = typeof value === "string" && /^[=+@\t-]/.test(value) && !Number.isFinite(Number(value)) ? `'${value}` : value;
  return (/[",\n]/.test(String(text)) ? `"${String(text).replaceAll('"', '""')}"` : String(text));
};

// One table: traces that share their x stand side by side, a heatmap is a grid, anything else gets its own columns.
export function toCsv(data, layout) {
  const plain = (title) => (title?.text ?? title ?? "").replace(/<[^>]+>/g, "");
  const shown = data.filter((trace) => trace.meta?.csv !== false);
  const grids = shown.filter((trace) => trace.z);
  if (grids.length) {
    return grids.map((grid) => {
      const corner = grids.length > 1 ? grid.name : `${plain(layout.yaxis?.title)} \\ ${plain(layout.xaxis?.title)}`;
      const head = [corner, ...grid.x].map(quote).join(",");
      return [head, ...grid.z.map((row, i) => [quote(grid.y ? grid.y[i] : i), ...row].join(","))].join("\n") + "\n";
    }).join("\n");
  }
  const columns = [];
  let lastX = null;
  for (const trace of shown) {
    const x = Array.from(trace.x ?? [], Number);
    const label = plain(layout[trace.xaxis === "x2" ? "xaxis2" : "xaxis"]?.title) || "x";
    if (!lastX || x.length !== lastX.length || x.some((v, i) => v !== lastX[i])) {
      columns.push([label, ...x]);
      lastX = x;
    }
    columns.push([trace.name ?? "y", ...trace.y]);
  }
  const rows = Math.max(...columns.map((column) => column.length));
  const lines = [];
  for (let i = 0; i < rows; i++) lines.push(columns.map((column) => quote(column[i] ?? "")).join(","));
  return lines.join("\n") + "\n";
}

const listed = (key, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);

async function toHtml(state) {
  const source = await (await fetch(state.src)).text();
  const figure = JSON.stringify({ data: state.drawn.data, layout: { ...state.drawn.layout, height: undefined } }, listed).replaceAll("<", "\\u003c");
  const title = state.message.title.replaceAll("<", "&lt;");
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head>
<body style="margin:0;background:${state.drawn.layout.paper_bgcolor}"><div id="figure" role="img" aria-label="${title.replaceAll('"', "&quot;")}" style="width:100%;height:100vh"></div>
<script>${source.replaceAll("</script", "<\\/script")}</script>
<script>const figure = ${figure};
Plotly.newPlot("figure", figure.data, figure.layout, { responsive: true, displaylogo: false, showSendToCloud: false });</script>
</body></html>`;
}

export async function download(state, format) {
  const { node, message } = state;
  const name = `${message.file}.${format}`;
  const { data, layout } = state.drawn;
  if (format === "csv") return save(toCsv(data, layout), "text/csv", name);
  if (format === "json") return save(JSON.stringify({ spec: message.spec, figure: { data, layout } }, listed, 1), "application/json", name);
  if (format === "html") return save(await toHtml(state), "text/html", name);
  const options = { format, width: Math.max(node.clientWidth, 800), height: node.clientHeight, scale: format === "png" ? 3 : 1 };
  const url = await window.Plotly.toImage(node, options);
  if (format === "svg") return save(decodeURIComponent(url.slice(url.indexOf(",") + 1)), "image/svg+xml", name);
  return save(await (await fetch(url)).blob(), "image/png", name);
}
