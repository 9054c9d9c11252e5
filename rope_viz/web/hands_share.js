// The menu of Home's picture: a video of it, and code that shows it on a page of another host.

import { addStyle, element, escapeHtml } from "./element.js";
import { makeSentenceForm } from "./sentence.js";
import { text } from "./texts.js";
import { copyAndReport, makeCell, makeMenu } from "./tools.js";
import { VIDEO, recordPicture } from "./video.js";

// Paint the line of words and the ruler as the page shows them; the circle is a canvas already.
function paintWords(s, x, line) {
  const measureBox = (node) => { const box = node.getBoundingClientRect(); return { x: box.x - line.x, y: box.y - line.y, w: box.width, h: box.height }; };
  const { c, ui, words, strip } = s, ruler = measureBox(strip), { lastChild: apart } = words, bracket = measureBox(apart), label = measureBox(apart.firstChild);
  const writeCentred = (content, { x: left, y, w, h }, size, colour, weight) => {
    Object.assign(x, { font: `${weight} ${size}px ${s.font}`, fillStyle: colour, textAlign: "center", textBaseline: "middle" });
    x.fillText(content, left + w / 2, y + h / 2);
  };
  const size = parseFloat(getComputedStyle(words).fontSize);
  for (const node of ui.words) {
    const box = measureBox(node.firstChild), role = node.dataset.do;
    if (role) {
      x.fillStyle = c[role];
      x.beginPath();
      x.roundRect(box.x, box.y, box.w, box.h, 8);
      x.fill();
    }
    writeCentred(node.textContent, box, size, role ? c.background : c.text, role ? 600 : 400);
  }
  x.beginPath();
  for (const [from, to] of [[bracket.x, label.x], [bracket.x + bracket.w, label.x + label.w]]) {
    x.moveTo(from, bracket.y + 28);
    x.lineTo(from, bracket.y + 12);
    x.lineTo(to, bracket.y + 12);
  }
  Object.assign(x, { strokeStyle: c.text, lineWidth: 2 });
  x.stroke();
  writeCentred(apart.textContent, label, 15, c.text, 600);
  Object.assign(x, { fillStyle: c.face, textBaseline: "alphabetic" });
  x.fillRect(ruler.x, ruler.y, ruler.w, ruler.h);
  x.drawImage(strip, ruler.x, ruler.y, ruler.w, ruler.h);
}

function recordHands(s, play) {
  const { data, c, canvas, root } = s, line = root.querySelector(".rv-line"), words = s.words.clientHeight + s.strip.clientHeight + 24;
  const w = Math.max(line.clientWidth, canvas.clientWidth), stop = element("button", { type: "button", textContent: data.texts.stop, onclick: () => s.recorder() });
  s.recorder = recordPicture({
    w, h: words + canvas.clientHeight, title: data.texts.headline, rows: w < 560 ? 4 : 3, colours: c, font: s.font, name: "rope-home",
    paint(x) {
      paintWords(s, x, line.getBoundingClientRect());
      const { clientWidth: wide, clientHeight: high } = canvas;
      x.drawImage(canvas, (w - wide) / 2, words, wide, high);
      return s.ui.now.textContent;
    },
    onEnd() {
      s.recorder = null;
      stop.remove();
    },
  });
  root.querySelector(".rv-tools").prepend(stop);
  play();
}

// Make the code that embeds the picture alone, with the model that it shows.
function makeEmbedCode(place) {
  const { origin, pathname, search } = new URL(place.makeAddress("html", {}, true)), base = pathname.split("rope-viz/")[0];
  const title = escapeHtml(place.message.title);
  return `<iframe src="${`${origin}${base}scene/home${search}`.replaceAll("&", "&amp;")}" title="${title}" width="100%" height="720" style="border:0"></iframe>`;
}

export default function addShareMenu(s, place, play, rebuild) {
  s.root.querySelector(".rv-room").replaceWith(makeSentenceForm(s.data.texts, rebuild)); // room for this form
  const { video, video_help } = s.data.texts, bar = element("span", { className: "rv-tools" });
  const describeCopy = (name, help, make) => ({ name, label: text(`share.${name}`), help: text(`share.${help}`), act: () => copyAndReport(make()) });
  const entries = [describeCopy("embed", "embed_moving_help", () => makeEmbedCode(place)), describeCopy("notebook", "notebook_help", () => makeCell(place, place.makeAddress("svg", {}, true)))];
  if (VIDEO) entries.unshift({ name: "record", label: video, help: video_help, act: () => void (s.recorder ? s.recorder() : recordHands(s, play)) });
  bar.append(makeMenu("share", text("share.moving"), () => entries));
  s.root.querySelector(".rv-bar").append(bar);
}

addStyle(`
.rv-hands .rv-tools { padding: 0; flex-wrap: nowrap; }
.rv-hands .rv-tools > button { min-height: 40px; font-size: 15px; }
@media (max-width: 640px) { .rv-hands .rv-tools { margin-left: auto; } .rv-hands .rv-tools > [data-do=share] span { display: none; } }
`);
