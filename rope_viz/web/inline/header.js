// The header's links and its theme button. This is part of the first page, so that the header is there before Streamlit.
(() => {
  const header = document.getElementById("rv-header"), tabs = document.getElementById("rv-tabs");
  const root = document.documentElement;
  if (new URLSearchParams(location.search).get("embed") === "true") root.dataset.embed = "yes";

  // The button that names the model opens Streamlit's sidebar. On a phone it is part of the page.
  const chip = document.getElementById("rv-chip"), actions = chip.parentNode;
  let retry = 0;
  const placeChip = () => {
    const slot = innerWidth <= 640 ? document.querySelector(".rv-chip-place") : actions;
    if (slot && chip.parentNode !== slot) slot.prepend(chip);
    // The header may be updated before the page has its place for the chip.
    clearTimeout(retry);
    if (!slot && ["explore", "lab"].includes(root.dataset.door)) retry = setTimeout(placeChip, 200);
  };
  addEventListener("resize", placeChip);
  chip.addEventListener("click", () => document.querySelector('[data-testid="stExpandSidebarButton"]')?.click());
  window.ropeVizUpdateChip = (parts) => [...chip.children].forEach((part, index) => (part.textContent = parts[index]));

  // The first stop of the keyboard; Streamlit's own one comes after the header.
  document.querySelector(".rv-skip").addEventListener("click", (event) => {
    event.preventDefault();
    const main = document.getElementById("stMain");
    main.tabIndex = -1;
    main.focus();
  });

  // Mark the current page, show the tabs of its door, and add the choice to every link.
  window.ropeVizUpdateHeader = (page, query) => {
    const door = DOORS[page] ?? "";
    root.dataset.door = door;
    for (const link of document.querySelectorAll("#rv-header a[data-to]")) {
      const to = link.dataset.to;
      link.href = `${ROOT ?? ""}/${to}${query ? `?${query}` : ""}`;
      const current = link.dataset.door ? link.dataset.door === door : to === page;
      if (current) link.setAttribute("aria-current", link.dataset.door && to !== page ? "true" : "page");
      else link.removeAttribute("aria-current");
    }
    for (const list of tabs.children) list.hidden = list.dataset.of !== door;
    tabs.hidden = ![...tabs.children].some((list) => !list.hidden);
    placeChip();
    root.dataset.tabs = tabs.hidden ? "no" : "yes";
    tabs.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const shared = [...new URLSearchParams(location.search)].filter(([key]) => !/[.-]|^embed/.test(key));
  window.ropeVizUpdateHeader(PAGE ?? "", new URLSearchParams(shared));

  // A link to this page in each language; the page's query changes while it is open.
  for (const link of document.querySelectorAll("#rv-header a[data-language]")) {
    const update = () => {
      const to = new URL(location.href);
      to.searchParams.set("lang", link.dataset.language);
      link.href = to.href;
    };
    for (const kind of ["pointerover", "focus", "click"]) link.addEventListener(kind, update);
    update();
  }

  // Streamlit 1.67 has no public way to change the theme from a page. It reads this entry of the storage when it starts, and
  // later takes a theme from messages of its host, which is the page itself unless it is framed (preload.js).
  const KEY = "rope-viz.theme", themes = THEMES;
  const storeTheme = (theme) => {
    try {
      localStorage.setItem(KEY, theme);
    } catch {} // the browser may forbid storage
  };
  let theme = null;
  try {
    theme = localStorage.getItem(KEY);
    if (theme) localStorage.setItem(`stActiveTheme-${location.pathname}-v2`, JSON.stringify(theme === "dark" ? "Dark" : "Light"));
  } catch {}
  const isDark = () => (theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const applyTheme = () => (root.dataset.theme = isDark() ? "dark" : "light");
  applyTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
  document.getElementById("rv-theme").addEventListener("click", () => {
    theme = isDark() ? "light" : "dark";
    storeTheme(theme);
    applyTheme();
    postMessage({ stCommVersion: 1, type: "SET_CUSTOM_THEME_CONFIG", themeName: theme, themeInfo: themes[theme] }, location.origin);
  });
})();
