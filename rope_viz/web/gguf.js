// The header of a GGUF file as a small JSON file, made in the browser: a model of 40 GB is not uploaded. The same as
// summarise_header in rope_viz/models/formats/gguf.py makes. Source: ggml's docs/gguf.md, versions 2 and 3.
const BLOCK = 1 << 22, MOST_KEYS = 100000, MOST_TEXT = 1 << 26, SHORT = 4096;
const STRING = 8, ARRAY = 9, FLOAT32 = 0;
// {GGUF type: [bytes, DataView's method]}
const NUMBERS = {
  0: [1, "getUint8"], 1: [1, "getInt8"], 2: [2, "getUint16"], 3: [2, "getInt16"], 4: [4, "getUint32"], 5: [4, "getInt32"],
  6: [4, "getFloat32"], 7: [1, "getUint8"], 10: [8, "getBigUint64"], 11: [8, "getBigInt64"], 12: [8, "getFloat64"],
};
const utf8 = new TextDecoder();

class HeaderParser {
  constructor(file) {
    Object.assign(this, { file, at: 0, first: 0, view: new DataView(new ArrayBuffer(0)) });
  }

  isLoaded(size) {
    return this.at + size <= this.first + this.view.byteLength;
  }

  // Load the next part of the file, from the current position on.
  async load(size) {
    const last = Math.min(this.at + Math.max(size, BLOCK), this.file.size);
    if (this.at + size > last) throw new Error("truncated");
    this.view = new DataView(await this.file.slice(this.at, last).arrayBuffer());
    this.first = this.at;
  }

  async readNumber(kind) {
    const [size, method] = NUMBERS[kind];
    if (!this.isLoaded(size)) await this.load(size);
    const value = this.view[method](this.at - this.first, true);
    this.at += size;
    return kind === 7 ? value !== 0 : Number(value);
  }

  async readText() {
    const size = await this.readNumber(10);
    if (size > MOST_TEXT) throw new Error("too long");
    if (!this.isLoaded(size)) await this.load(size);
    const bytes = new Uint8Array(this.view.buffer, this.at - this.first, size);
    this.at += size;
    return utf8.decode(bytes);
  }

  async skipTexts(count) {
    for (let left = count; left > 0; left--) {
      if (!this.isLoaded(8)) await this.load(8);
      const size = Number(this.view.getBigUint64(this.at - this.first, true));
      if (size > MOST_TEXT) throw new Error("too long");
      this.at += 8 + size;
    }
  }

  // Read a value; null for an array that is longer than SHORT.
  async readValue(kind) {
    if (kind === STRING) return this.readText();
    if (kind !== ARRAY) {
      if (!NUMBERS[kind]) throw new Error("unknown type");
      return this.readNumber(kind);
    }
    const inner = await this.readNumber(4), count = await this.readNumber(10), found = [];
    if (inner !== STRING && !NUMBERS[inner]) throw new Error("unknown type");
    if (count > SHORT) {
      if (inner === STRING) await this.skipTexts(count);
      else this.at += NUMBERS[inner][0] * count;
      return null;
    }
    for (let i = 0; i < count; i++) found.push(inner === STRING ? await this.readText() : await this.readNumber(inner));
    return found;
  }
}

async function readHeader(file) {
  const parser = new HeaderParser(file), keys = {}, divisors = {}, tensors = [];
  if ((await parser.readNumber(4)) !== 0x46554747) throw new Error("no GGUF file");
  const version = await parser.readNumber(4), count = await parser.readNumber(10), keyCount = await parser.readNumber(10);
  if (![2, 3].includes(version) || count > MOST_KEYS || keyCount > MOST_KEYS) throw new Error("unknown version");
  for (let i = 0; i < keyCount; i++) {
    const name = await parser.readText(), value = await parser.readValue(await parser.readNumber(4));
    if (value !== null && !/^(tokenizer|quantize)\./.test(name)) keys[name] = value;
  }
  for (let i = 0; i < count; i++) {
    const name = await parser.readText(), axes = await parser.readNumber(4), shape = [];
    if (axes > 8) throw new Error("too many axes");
    for (let axis = 0; axis < axes; axis++) shape.push(await parser.readNumber(10));
    tensors.push({ name, shape, kind: await parser.readNumber(4), first: await parser.readNumber(10) });
  }
  const step = keys["general.alignment"] || 32, start = Math.ceil(parser.at / step) * step;
  for (const { name, shape, kind, first } of tensors) {
    if (!/^rope_(freqs|factors)/.test(name) || kind !== FLOAT32 || shape.length !== 1 || shape[0] > SHORT) continue;
    parser.at = start + first;
    divisors[name] = [];
    for (let i = 0; i < shape[0]; i++) divisors[name].push(await parser.readNumber(6));
  }
  const embedding = tensors.find(({ name }) => name === "token_embd.weight"), whole = (keys["split.count"] || 1) === 1;
  const known = {};
  if (whole) known.tensor_bytes = file.size - start;
  if (embedding?.shape.length === 2) known.vocabulary = embedding.shape[1];
  if (embedding && whole) known.tied = !tensors.some(({ name }) => name === "output.weight");
  return { keys, divisors, ...known };
}

// Return a file of a few kilobytes that the server reads in place of the GGUF file.
export async function summarise(file) {
  const found = await readHeader(file).catch(() => ({ unreadable: true }));
  return new File([JSON.stringify({ gguf: found })], file.name, { type: "application/json" });
}
