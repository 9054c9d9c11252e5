// A message: [u32 header length][header JSON][typed arrays], arrays named by {"$": [dtype, offset, count, columns?, low?, high?]}.
// rope_viz/picture/wire_format.py packs it.

const DTYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i1: Int8Array, u1: Uint8Array };

export function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const origin = 4 + size;
  return JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)), (key, value) => {
    if (!value || !value.$) return value;
    const [dtype, offset, count, columns, low, high] = value.$;
    let flat = new DTYPES[dtype](buffer, origin + offset, count);
    // For a moving knob a heatmap is sent in 8 bits between two ends; 255 is a gap.
    if (low !== undefined) flat = Float32Array.from(flat, (v) => (v === 255 ? NaN : low + (v * (high - low)) / 254));
    if (!columns) return flat;
    const rows = [];
    for (let start = 0; start < count; start += columns) rows.push(flat.subarray(start, start + columns));
    return rows;
  });
}

// The scripts that draw pictures, by kind. If one fails to load, the next request uses another address, because some
// browsers remember the failure.
const scripts = {};
let failures = 0;

export function loadScript(kind) {
  const address = new URL(`${kind}.js${failures ? `?${failures}` : ""}`, import.meta.url).href;
  return (scripts[kind] ??= import(address).catch((error) => {
    delete scripts[kind];
    failures += 1;
    throw error;
  }));
}
