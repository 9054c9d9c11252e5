// On a slow line the scripts take half a minute or more, but the page's first picture as a file only a few seconds. It is
// shown until the page can draw its own (`picture.js`). A browser that has the scripts by then never requests it.
(() => {
  // Milliseconds after which only a slow line has not loaded the page.
  const LATE = 10000;
  // Later pages open within the app, so only the first one matters.
  const query = new URLSearchParams(location.search);

  function requestPlaceholder() {
    if (!ROOT || window.ropeVizPlaceholder || document.querySelector("[data-picture]")) return;
    // The page has loaded and has no place for a picture.
    if (document.querySelector("[data-testid=stMain] h1") && !document.querySelector("[data-place]")) return;
    const [first] = FIRST[PAGE] ?? [];
    if (!first) return;
    const [group] = first.split("/"), presented = query.get("present") ?? "1", picture = presented === "1" ? first : `${group}/${presented}`;
    // The rest belongs to the page, to the browser or to another page; the picture's address would be refused.
    for (const key of [...query.keys()].filter((each) => !KEYS.includes(each) && !each.startsWith(`${group}.`))) query.delete(key);
    query.set("part", 0); // the coarse first part of a slow picture
    query.set("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    query.set("width", `${Math.max(320, Math.min(innerWidth - 48, 1000))}px`);
    const image = Object.assign(new Image(), { alt: PICTURE_LABEL, fetchPriority: "high" });
    window.ropeVizPlaceholder = { picture };
    image.onload = () => {
      window.ropeVizPlaceholder.image = image.src;
      const loading = document.getElementById("rv-coming");
      loading.append(image);
      loading.classList.add("rv-placeholder");
      dispatchEvent(new Event("rv-placeholder"));
    };
    image.src = `${ROOT}/rope-viz/picture/${picture}.svg?${query}`;
  }

  const isLoaded = () => performance.getEntriesByType("resource").some(({ name, responseEnd }) => responseEnd && /static\/js\/index\./.test(name));
  setTimeout(() => isLoaded() || requestPlaceholder(), SLOW);
  setTimeout(requestPlaceholder, LATE);
})();
