// Record a moving picture as a video file: ten seconds, or until the user stops. Rotation, Home and Learn use it.

import { writeMark } from "./mark.js";

const TYPES = ["video/mp4;codecs=avc1.42E01F", "video/webm;codecs=vp9", "video/webm"];
const MOST = 1280 * 720; // pixels of a frame, the largest that the first type allows
const MARGIN = 24, HEAD = 30, ROW = 24; // pixels around the picture, and of a row of its title and of its sentence

export const SECONDS = 10;

// The type of video that this browser records, undefined if it records none.
export const VIDEO = TYPES.find((type) => globalThis.MediaRecorder?.isTypeSupported(type));

// Download a blob as a file.
export function save(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Record a canvas and save the file. Returns a function that stops it; `onEnd` runs in any case at the end.
function record(canvas, name, onEnd) {
  const parts = [], recorder = new MediaRecorder(canvas.captureStream(60), { mimeType: VIDEO, videoBitsPerSecond: 6e6 });
  const stop = () => recorder.state !== "inactive" && recorder.stop(), timer = setTimeout(stop, 1000 * SECONDS);
  recorder.ondataavailable = ({ data }) => parts.push(data);
  recorder.onstop = () => {
    clearTimeout(timer);
    recorder.stream.getTracks().forEach((track) => track.stop());
    onEnd();
    save(new Blob(parts, { type: VIDEO }), `${name}.${VIDEO.slice(6).split(";")[0]}`);
  };
  recorder.start();
  return stop;
}

const MARK = 24; // pixels of the line that names us, below the picture

// Write that line at the right end of the lower edge of a picture.
function paintMark(x, width, height, font, colour) {
  Object.assign(x, { font: `13px ${font}`, fillStyle: colour, textAlign: "right", textBaseline: "alphabetic", globalAlpha: 1 });
  x.fillText(writeMark(), width - 12, height - 8);
}

// Record a canvas above the line that names us, as `record` does.
export function recordCanvas(source, { text, background }, font, name, onEnd) {
  const canvas = document.createElement("canvas"), x = canvas.getContext("2d"), scale = source.width / source.clientWidth;
  Object.assign(canvas, { width: 2 * Math.floor(source.width / 2), height: 2 * Math.floor((source.height + MARK * scale) / 2) });
  let request = 0;
  const draw = () => {
    request = requestAnimationFrame(draw);
    x.setTransform(1, 0, 0, 1, 0, 0);
    Object.assign(x, { fillStyle: background, globalAlpha: 1 });
    x.fillRect(0, 0, canvas.width, canvas.height);
    x.drawImage(source, 0, 0);
    x.scale(scale, scale);
    paintMark(x, canvas.width / scale, canvas.height / scale, font, text);
  };
  draw();
  return record(canvas, name, () => {
    cancelAnimationFrame(request);
    onEnd();
  });
}

function wrapText(x, text, width) {
  const rows = [""];
  for (const word of text.split(/\s+/)) {
    const longer = `${rows.at(-1)} ${word}`.trim();
    if (x.measureText(longer).width <= width) rows[rows.length - 1] = longer;
    else rows.push(word);
  }
  return rows;
}

// Record a picture of w by h pixels below its title and above its sentence, as `record` does. `paint(context, share)`
// draws it, where `share` is the elapsed share of the recording, and returns the current sentence.
export function recordPicture({ w, h, title, rows, colours: { text, background }, font, name, paint, onEnd }) {
  const canvas = document.createElement("canvas"), x = canvas.getContext("2d"), startTime = performance.now();
  const head = `600 20px ${font}`, body = `16px ${font}`;
  x.font = head;
  const heads = wrapText(x, title, w), top = MARGIN + heads.length * HEAD, wide = w + 2 * MARGIN, high = top + h + rows * ROW + 2 * MARGIN + MARK;
  const scale = Math.min(2, Math.sqrt(MOST / (wide * high)));
  // These types of video have an even number of pixels.
  Object.assign(canvas, { width: 2 * Math.floor((wide * scale) / 2), height: 2 * Math.floor((high * scale) / 2) });
  let request = 0;
  const draw = () => {
    request = requestAnimationFrame(draw);
    x.setTransform(scale, 0, 0, scale, 0, 0);
    Object.assign(x, { fillStyle: background, globalAlpha: 1 });
    x.fillRect(0, 0, wide, high);
    x.save();
    x.translate(MARGIN, top);
    const sentence = paint(x, Math.min(1, (performance.now() - startTime) / (1000 * SECONDS)));
    x.restore();
    Object.assign(x, { fillStyle: text, textAlign: "left", font: head });
    heads.forEach((row, i) => x.fillText(row, MARGIN, MARGIN + 16 + i * HEAD));
    x.font = body;
    wrapText(x, sentence, w).forEach((row, i) => x.fillText(row, MARGIN, top + h + 32 + i * ROW));
    paintMark(x, wide, high, font, text);
  };
  draw();
  const stop = record(canvas, name, () => {
    cancelAnimationFrame(request);
    onEnd();
  });
  return () => (cancelAnimationFrame(request), stop());
}
