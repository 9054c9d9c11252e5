// Messages to the server, repeated until confirmed: a run may be lost with the connection, and a restarted server ignores
// the first message of a page it does not know. One message at a time, the latest of each name. The server's part is
// `mounted` in component.py.

// Initial and longest time to wait for a confirmation. A message repeated too early costs a run, which would even undo a
// page change by a link clicked meanwhile.
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

  // Use the same turn for every repetition, so that a message is not applied twice.
  send() {
    this.flight.tries += 1;
    this.component.setStateValue("at", { ...this.flight });
    this.watch(this.flight.turn);
  }

  // Repeat the message if it is unconfirmed although the server answers and is idle.
  watch(turn, calm = 0) {
    setTimeout(() => {
      if (this.flight?.turn !== turn || !this.component.parentElement.isConnected) return;
      const { testConnectionState, testScriptState } = document.querySelector('[data-testid="stApp"]')?.dataset ?? {};
      const rests = testConnectionState === "CONNECTED" && testScriptState === "notRunning" && performance.now() > left + MOST;
      if (rests && calm >= patience) this.send();
      else this.watch(turn, rests ? calm + 100 : 0);
    }, 100);
  }

  // Drop all messages whose name begins so.
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
