// What a reader asks of the server is asked again until the server has taken it: a run may be lost with the connection, and
// a server that was started anew does not take the first word of a page that it does not know. One word at a time, the last
// of each name. `hears` in component.py is the other end.

// An answer may take this long, at first and at most: what was said again on its way is one more run, and one that leads
// back where a link was clicked meanwhile.
const FIRST = 600, MOST = 5000, TO_PAGES = 'header a, nav a, [data-testid="stSidebarNav"] a, [data-testid="stPageLink"] a';
let patience = FIRST, left = -MOST;
addEventListener("click", ({ target }) => target.closest?.(TO_PAGES) && (left = performance.now()), true);

export class Post {
  constructor() {
    this.waiting = new Map();
    this.flight = null;
  }

  put(name, value) {
    this.waiting.set(name, value);
    this.next();
  }

  has(name) {
    return this.waiting.has(name) || this.flight?.name === name;
  }

  next() {
    if (this.flight || !this.waiting.size) return;
    const [name, value] = this.waiting.entries().next().value;
    this.waiting.delete(name);
    this.flight = { name, value, turn: Date.now(), tries: 0 };
    this.send();
  }

  // Under the same turn each time, so that what was taken is not taken twice.
  send() {
    this.flight.tries += 1;
    this.component.setStateValue("at", { ...this.flight });
    this.watch(this.flight.turn);
  }

  // Not taken although the server answers and rests: once more.
  watch(turn, calm = 0) {
    setTimeout(() => {
      if (this.flight?.turn !== turn || !this.component.parentElement.isConnected) return;
      const { testConnectionState, testScriptState } = document.querySelector('[data-testid="stApp"]')?.dataset ?? {};
      const rests = testConnectionState === "CONNECTED" && testScriptState === "notRunning" && performance.now() > left + MOST;
      if (rests && calm >= patience) this.send();
      else this.watch(turn, rests ? calm + 100 : 0);
    }, 100);
  }

  // All whose names begin so.
  drop(begin) {
    for (const name of this.waiting.keys()) if (name.startsWith(begin)) this.waiting.delete(name);
    if (!this.flight?.name.startsWith(begin)) return;
    this.flight = null;
    this.next();
  }

  taken(turn) {
    if (!this.flight || this.flight.turn !== turn) return;
    patience = Math.max(FIRST, Math.min(MOST, 2 * (Date.now() - turn)));
    this.flight = null;
    this.next();
  }
}
