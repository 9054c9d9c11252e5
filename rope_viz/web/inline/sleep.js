// A page that the server closes with this code made room for another visitor. Streamlit's client would reconnect at once
// and take the place of somebody else, so its questions wait until the page is used again.
(() => {
  const SLEEP = 4001, FIRST_USE = ["keydown", "pointerdown", "wheel", "touchstart"];
  const Socket = window.WebSocket, ask = window.fetch;
  let awake = null;

  function sleep() {
    if (awake) return;
    const note = Object.assign(document.createElement("div"), { id: "rv-asleep", role: "status", textContent: ASLEEP });
    document.body.append(note);
    awake = new Promise((resolve) => {
      function wake() {
        if (document.hidden) return;
        for (const name of FIRST_USE) removeEventListener(name, wake, true);
        document.removeEventListener("visibilitychange", wake);
        note.remove();
        awake = null;
        resolve();
      }
      for (const name of FIRST_USE) addEventListener(name, wake, true);
      document.addEventListener("visibilitychange", wake);
    });
  }

  window.WebSocket = class extends Socket {
    constructor(...given) {
      super(...given);
      this.addEventListener("close", ({ code }) => code === SLEEP && sleep());
    }
  };
  window.fetch = (address, options) => {
    if (!awake || !/\/_stcore\//.test(address?.url ?? address)) return ask(address, options);
    // The client's own signal has ended by then.
    return awake.then(() => ask(address, { ...options, signal: undefined }));
  };

  // A page whose connection alone was refused says why, as the server's answer to the whole page does.
  const PATIENCE = 10000;
  async function explain() {
    const loading = document.getElementById("rv-coming");
    if (!loading || document.querySelector("[data-testid=stMain] h1")) return;
    const answer = await ask(location.href, { cache: "no-store" }).catch(() => null);
    if (answer?.status === 503) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const sentence = page.querySelector("main p")?.textContent;
      if (sentence) loading.querySelector("p").textContent = sentence;
    }
    setTimeout(explain, PATIENCE);
  }
  setTimeout(explain, PATIENCE);
})();
