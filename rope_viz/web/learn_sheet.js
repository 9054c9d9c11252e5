// The end of Learn: one sheet with the eight pictures as the user left them, the score, where to look again, and the citation.

import { makeLook, paintShape } from "./learn_video.js";
import { escapeHtml } from "./element.js";
import { fill } from "./learn_kit.js";
import { makePng } from "./mark.js";
import { save } from "./video.js";

const W = 360, H = 270, GAP = 24; // pixels of a picture and between pictures
const WIDE = 4; // pictures in a row of the saved file

// List all questions, the predictions first: what they ask, the scene that shows the answer, and whether the answer was right.
function listQuestions({ data: { scenes }, states }) {
  const quiz = scenes.at(-1).numbers.quiz, judge = (given, right) => (given === null ? null : given === right);
  return [
    ...scenes.map(({ texts: { question, right } }, i) => ({ question, scene: i + 1, isRight: judge(states[i].answer, right) })),
    ...quiz.map(({ question, scene, right }, i) => ({ question, scene, isRight: judge(states.at(-1).quiz[i], right) })),
  ];
}

function describeScore(s, questions) {
  const { texts } = s.data, count = (kind) => questions.filter(({ isRight }) => isRight === kind).length, open = count(null);
  return `${fill(texts.sheet_score, { right: count(true), all: questions.length })}${open ? ` ${fill(texts.sheet_open, { open })}` : ""}`;
}

// Make the sheet's HTML. `drawSmall(at, w, h)` returns the picture of a scene as SVG.
export function makeSheet(s, drawSmall) {
  const { texts, scenes, app, outside } = s.data, questions = listQuestions(s), again = questions.filter(({ isRight }) => isRight === false);
  const pictures = scenes.map(({ texts: { short, title } }, i) => `<li><button type="button" data-do="step" data-step="${i + 1}"><b>${i + 1}&ensp;${short}</b><svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${title}">${drawSmall(i + 1, W, H)}</svg></button></li>`).join("");
  const pointers = again.map(({ question, scene }) => `<li>${question} <button type="button" data-do="step" data-step="${scene}">${fill(texts.sheet_again, { scene, short: scenes[scene - 1].texts.short })}</button></li>`).join("");
  return `<h2 tabindex="-1">${texts.sheet_title}</h2><p class="rv-lead"><b>${describeScore(s, questions)}</b></p>${pointers ? `<p>${texts.sheet_wrong}</p><ul class="rv-again">${pointers}</ul>` : ""}
    <div class="rv-extra"><button type="button" data-do="save">${texts.sheet_save}</button><button type="button" data-do="restart">${texts.restart}</button></div>
    <ol class="rv-eight">${pictures}</ol><p class="rv-cite">${texts.cite} <span>${escapeHtml(s.data.citation)}</span></p>
    <div class="rv-way"><button type="button" data-do="back" aria-label="${texts.back}">←</button>${app === null ? "" : `<a class="rv-next" href="${app}/model"${outside ? ' target="_blank"' : ""}>${texts.own} →</a>`}</div>`;
}

// Save the sheet as a PNG file.
export function saveSheet(s, drawSmall) {
  const { texts, scenes, citation } = s.data, look = makeLook(s.root), canvas = document.createElement("canvas"), x = canvas.getContext("2d"), box = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const rows = Math.ceil(scenes.length / WIDE), head = 110, foot = 60, line = H + 64, wide = WIDE * (W + GAP) + GAP, high = head + rows * line + foot, scale = 2;
  Object.assign(canvas, { width: wide * scale, height: high * scale });
  x.scale(scale, scale);
  const write = (text, left, top, size, weight) => Object.assign(x, { globalAlpha: 1, textAlign: "left", fillStyle: look.resolveColour("var(--text)"), font: `${weight} ${size}px ${look.font}` }).fillText(text, left, top);
  x.fillStyle = look.resolveColour("var(--background)");
  x.fillRect(0, 0, wide, high);
  write(s.data.title, GAP, 48, 30, 700);
  write(describeScore(s, listQuestions(s)), GAP, 82, 18, 400);
  scenes.forEach(({ texts: { short } }, i) => {
    const left = GAP + (i % WIDE) * (W + GAP), top = head + Math.floor(i / WIDE) * line;
    write(`${i + 1}  ${short}`, left, top + 18, 17, 600);
    box.innerHTML = drawSmall(i + 1, W, H);
    x.save();
    x.beginPath();
    x.rect(left, top + 30, W, H);
    x.clip();
    x.translate(left, top + 30);
    for (const node of box.children) paintShape(x, node, look);
    x.restore();
  });
  write(`${texts.cite} ${citation}`, GAP, high - 24, 14, 400);
  makePng(canvas).then((blob) => save(blob, "rope-in-eight-scenes.png"));
}
