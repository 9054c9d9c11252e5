// Request what the page will need while Streamlit's own scripts load and run; otherwise one would wait for the other.
(() => {
  if (!ROOT) return;

  // Streamlit's client requests its server's address and settings before it connects, first at a wrong place after a deep
  // link; providing them here avoids that. Not within a frame, whose host may provide its own, as Streamlit's cloud does.
  if (window === window.parent) {
    window.__streamlit ??= {
      BACKEND_BASE_URL: `${ROOT}/`,
      HOST_CONFIG: { allowedOrigins: [location.origin], useExternalAuthToken: false, blockErrorDialogs: true },
    };
  }

  const resolveScript = (name) => `${ROOT}SCRIPTS/${name}`;
  const appendToHead = (element, more) => document.head.append(Object.assign(document.createElement(element), more));
  addEventListener("DOMContentLoaded", () => {
    // On a slow line, leave the bandwidth to the page itself.
    if (performance.getEntriesByType("resource").some(({ responseEnd }) => responseEnd > SLOW)) return;
    const draws = FIRST[PAGE]?.[1];
    for (const name of NEEDED[draws ?? ""]) appendToHead("link", { rel: "modulepreload", href: resolveScript(name) });
    // Parsing it takes about 0.3 s, which clocks need not wait for. chart.js finds this script, and requests it again if
    // it failed.
    if (draws !== "chart") return;
    appendToHead("script", { src: resolveScript("plotly.min.js"), async: true, fetchPriority: "low", onerror: ({ target }) => target.remove() });
  });

  // Of a GGUF file only the header is sent. Streamlit gets a small file in its place, as if the user had chosen that.
  const findGguf = (files) => [...(files ?? [])].find(({ name }) => name.toLowerCase().endsWith(".gguf"));
  const summaries = new WeakSet();
  for (const kind of ["change", "drop"]) {
    addEventListener(kind, async (event) => {
      const field = event.target.closest?.('[data-testid="stFileUploader"]')?.querySelector('input[type="file"]');
      const file = field && findGguf(kind === "drop" ? event.dataTransfer?.files : field.files);
      if (!file || summaries.has(file)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      const { summarise } = await import(resolveScript("gguf.js"));
      const small = new DataTransfer();
      small.items.add(await summarise(file));
      field.files = small.files;
      summaries.add(field.files[0]);
      field.dispatchEvent(new Event("change", { bubbles: true }));
    }, true);
  }
})();
