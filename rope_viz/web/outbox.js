// Messages to the server, repeated until confirmed: a run may be lost with the connection, and a restarted server ignores
// the first message of a page it does not know. One message at a time, the latest of each name. The server's part is
// `mounted` in component.py.

// Initial and longest time to wait for a confirmation. A message repeated too early costs a run, which would even undo a
// page change by a link clicked meanwhile.
const FIRST = 600, MOST = 5000, TO_PAGES = 'header a, nav a, [data-testid="stSidebarNav"] a, [data-testid="stPageLink"] a';
let patience = FIRST, pageLinkClickedAt = -MOST;
addEventListener("click", ({ target }) => target.closest?.(TO_PAGES) && (pageLinkClickedAt = performance.now()), true);

export class Outbox {
  constructor() {
    this.queue = new Map();
    this.inFlight = null;
  }

  send(name, value) {
    this.queue.set(name, value);
    this.sendNext();
  }

  isPending(name) {
    return this.queue.has(name) || this.inFlight?.name === name;
  }

  sendNext() {
    if (this.inFlight || !this.queue.size) return;
    const [name, value] = this.queue.entries().next().value;
    this.queue.delete(name);
    this.inFlight = { name, value, turn: Date.now(), tries: 0 };
    this.transmit();
  }

  // Use the same turn for every repetition, so that a message is not applied twice.
  transmit() {
    this.inFlight.tries += 1;
    this.component.setStateValue("message", { ...this.inFlight });
    this.repeatUnlessConfirmed(this.inFlight.turn);
  }

  // Repeat the message if it is unconfirmed although the server answers and is idle.
  repeatUnlessConfirmed(turn, idleTime = 0) {
    setTimeout(() => {
      if (this.inFlight?.turn !== turn || !this.component.parentElement.isConnected) return;
      const { testConnectionState, testScriptState } = document.querySelector('[data-testid="stApp"]')?.dataset ?? {};
      const isIdle = testConnectionState === "CONNECTED" && testScriptState === "notRunning" && performance.now() > pageLinkClickedAt + MOST;
      if (isIdle && idleTime >= patience) this.transmit();
      else this.repeatUnlessConfirmed(turn, isIdle ? idleTime + 100 : 0);
    }, 100);
  }

  // Drop all messages whose name begins with `prefix`.
  drop(prefix) {
    for (const name of this.queue.keys()) if (name.startsWith(prefix)) this.queue.delete(name);
    if (!this.inFlight?.name.startsWith(prefix)) return;
    this.inFlight = null;
    this.sendNext();
  }

  // End the message of this turn, which the server has confirmed, and send the next one.
  confirm(turn) {
    if (!this.inFlight || this.inFlight.turn !== turn) return;
    patience = Math.max(FIRST, Math.min(MOST, 2 * (Date.now() - turn)));
    this.inFlight = null;
    this.sendNext();
  }
}
