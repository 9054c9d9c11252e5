// Our name and the app's public address, where the server knows one: visible in videos, as text inside PNG files.

const NAME = "RoPE Viz";

const readAddress = () => document.querySelector('meta[name="rope-viz:address"]')?.content ?? "";

// Return the line below a video: "RoPE Viz · example.org/rope".
export const writeMark = () => [NAME, readAddress().replace(/^\w+:\/\//, "")].filter(Boolean).join(" · ");

// The checksum of a PNG chunk (https://www.w3.org/TR/png/#D-CRCAppendix).
function computeCrc(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function makeChunk(keyword, value) {
  const body = new TextEncoder().encode(`tEXt${keyword}\0${value}`), chunk = new Uint8Array(body.length + 8), view = new DataView(chunk.buffer);
  view.setUint32(0, body.length - 4);
  chunk.set(body, 4);
  view.setUint32(body.length + 4, computeCrc(body));
  return chunk;
}

// Return a canvas as a PNG with our name and address in its text, after the first chunk, which is 33 bytes from the start.
export async function makePng(canvas) {
  const blob = await new Promise((resolve) => canvas.toBlob(resolve)), address = readAddress();
  const chunks = [makeChunk("Software", NAME), ...(address ? [makeChunk("Source", address)] : [])];
  return new Blob([blob.slice(0, 33), ...chunks, blob.slice(33)], { type: blob.type });
}
