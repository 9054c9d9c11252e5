// While a knob moves: the pictures in view, asked for one after the other with the value under the hand, and handed to
// whoever shows them. rope_viz/ui/live.py answers; the page itself runs on release only.

// The first picture in view follows the hand at once; each of the others at most four times a second, and once it rests.
const OTHERS_EVERY = 250;
const REST = 120;
// A release waits this long for the picture on its way.
const PATIENCE = 1000;

let wanted = null;
let ending = false;
let running = null;
let rest = 0;
let whole = 0;

// Ask for the pictures of a reader's page with one knob at this value; the last value asked for wins.
export function follow(token, knob, value) {
  wanted = { reader: new URL(`../live/${token}/`, import.meta.url).href, query: new URLSearchParams({ knob, value }) };
  ending = false;
  clearTimeout(whole);
  clearTimeout(rest);
  rest = setTimeout(start, REST, true);
  start();
}

function start(resting = false) {
  if (resting) rest = 0;
  running ??= run().finally(() => (running = null));
}

// The hand has left: settled once the first picture shows the last value.
export function caughtUp() {
  ending = true;
  clearTimeout(rest);
  return Promise.race([running, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
}

// After a release: what the page has not drawn anew when it has run stays as it was before, and comes back whole.
export function released(calm = 0) {
  clearTimeout(whole);
  whole = setTimeout(() => {
    const working = document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "running";
    if (working || calm < 4) return released(working ? 0 : calm + 1);
    for (const root of document.querySelectorAll("[data-picture]")) if (root.__message !== root.__rested) root.__show(root.__rested);
  }, 50);
}

async function run() {
  let last = null;
  for (;;) {
    const [first, ...others] = inView();
    const behind = others.filter((root) => root.__asked !== wanted);
    const due = behind.find((root) => performance.now() - (root.__askedAt ?? 0) > OTHERS_EVERY);
    const next = ending ? null : (due ?? (rest ? null : behind[0]));
    const root = first?.__asked !== wanted && !(due && next && last === first) ? first : next;
    if (!root) return;
    await renew((last = root));
  }
}

const slot = ({ dataset }) => document.querySelector(`[data-says="${dataset.picture}"]`);

// A picture counts where it or its sentence can be seen.
const inView = () => [...document.querySelectorAll("[data-picture]")].filter((root) => [root, slot(root)].some((part) => {
  const { top, bottom, width } = part?.getBoundingClientRect() ?? {};
  return width && bottom > 0 && top < innerHeight;
}));

async function renew(root) {
  const { reader, query } = (root.__asked = wanted);
  const { picture } = root.dataset;
  const before = root.__message;
  root.__askedAt = performance.now();
  const answer = await fetch(`${reader}${picture}?${query}`).catch(() => null);
  if (answer?.status !== 200) return;
  const message = unpack(new Uint8Array(await answer.arrayBuffer()));
  // What the page has drawn in the meantime is newer.
  if (root.__message !== before || !root.isConnected) return;
  const place = slot(root);
  if (place) place.innerHTML = message.sentence;
  await root.__show?.(message);
}

// --- A message: [u32 header length][header JSON][typed arrays], arrays named by {"$": [dtype, offset, count, columns?, low?, high?]}.

const DTYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i1: Int8Array, u1: Uint8Array };

export function unpack(bytes) {
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const size = new DataView(buffer).getUint32(0, true);
  const origin = 4 + size;
  return JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)), (key, value) => {
    if (!value || !value.$) return value;
    const [dtype, offset, count, columns, low, high] = value.$;
    let flat = new DTYPES[dtype](buffer, origin + offset, count);
    // While a knob moves a heatmap comes in 8 bits between two ends; 255 is a gap.
    if (low !== undefined) flat = Float32Array.from(flat, (v) => (v === 255 ? NaN : low + (v * (high - low)) / 254));
    if (!columns) return flat;
    const rows = [];
    for (let start = 0; start < count; start += columns) rows.push(flat.subarray(start, start + columns));
    return rows;
  });
}
