// What the page will need is asked for while Streamlit's own scripts come and run: left to them, one waits for the other.
(() => {
  if (!ROOT) return;

  // Streamlit's client asks where its server is and how it is set, at the wrong place first beside a deep link, before it
  // connects; whoever serves it may tell it beforehand. In a frame whoever shows it there may have more to say, Streamlit's cloud does.
  if (window === window.parent) {
    window.__streamlit ??= {
      BACKEND_BASE_URL: `${ROOT}/`,
      HOST_CONFIG: { allowedOrigins: [location.origin], useExternalAuthToken: false, blockErrorDialogs: true },
    };
  }

  const address = (name) => `${ROOT}SCRIPTS/${name}`;
  const bring = (element, more) => document.head.append(Object.assign(document.createElement(element), more));
  addEventListener("DOMContentLoaded", () => {
    // On a slow line the page itself comes first.
    if (performance.getEntriesByType("resource").some(({ responseEnd }) => responseEnd > SLOW)) return;
    const draws = FIRST[PAGE]?.[2];
    for (const name of ["shell", "knob", "picture", "tools", "post", "message", "touch", "copy", ...(draws ? [draws] : [])]) {
      bring("link", { rel: "modulepreload", href: address(`${name}.js`) });
    }
    // It takes the browser for some 0.3 s when it comes, which clocks need not wait for. chart.js finds it there,
    // and asks anew where it did not come.
    if (draws !== "chart") return;
    bring("script", { src: address("plotly.min.js"), async: true, fetchPriority: "low", onerror: ({ target }) => target.remove() });
  });
})();
