// Learn: eight scenes, each with a picture that the user moves, a prediction, a task and a sentence with the current numbers.
// rope_viz/pages/learn/figures.py packs their numbers and texts. On a page of its own, `place` has little more than a root.

import { addStyle, isDark } from "./element.js";
import { clamp, fill, makeTrack, setAttribute, setHtml, updateShapes } from "./learn_kit.js";
import { makeSheet, saveSheet } from "./learn_sheet.js";
import { OWN, SCENES, drawScene, drawSmall, forget, getCurrent, isComplete, makeSentence, makeState, store, stripTags, useOwnWords } from "./learn_state.js";
import { makeSentenceForm, readSentence } from "./sentence.js";
import { canRecord, recordScene } from "./learn_video.js";
import { STYLE } from "./learn_style.js";

const TICK = '<svg class="rv-tick" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="M2 8.5l4 4 8-9" fill="none" stroke="currentColor" stroke-width="2"/></svg>';

function moveThumb(s, name, value, how) {
  const { scene, state, numbers } = getCurrent(s), { v } = state, thumb = s.thumbs[name];
  const [low, high] = scene.findLimits?.(v, numbers)[name] ?? [thumb.least ?? thumb.row?.low ?? 0, thumb.most ?? thumb.row?.high];
  const step = how === "step" ? (scene.round ?? ((each) => (thumb.whole && thumb.step > 1 ? Math.round(each) : Math.round(each / (thumb.step ?? 1)) * (thumb.step ?? 1))))(value) : value;
  v[name] = clamp(step, low, high);
  s.userMoved = true;
  checkTask(s);
}

function checkTask(s) {
  const { scene, state, numbers } = getCurrent(s);
  if (!state.done && scene.isDone(state.v, numbers, state)) {
    state.done = true;
    showProgress(s);
  }
  requestFrame(s);
}

function restart(s) {
  forget();
  Object.assign(s, makeState({ ...s.data, scene: 1 }), { reported: s.reported, at: s.at });
  if (s.at === 1) showScene(s);
  else openScene(s, 1);
}

// Show the user's own sentence in its scene.
function changeSentence(s) {
  s.data = useOwnWords(s.given);
  const { state, numbers } = getCurrent(s, OWN), [key, query] = numbers.start;
  Object.assign(state.v, { key, query });
  showScene(s);
}

// --- Painting

function requestFrame(s) {
  s.request ||= requestAnimationFrame((time) => {
    s.request = 0;
    if (s.root.isConnected && s.ui.picture.clientWidth) paint(s, time);
  });
}

function paint(s, time = performance.now()) {
  const { scene, state, numbers, words } = getCurrent(s), { picture } = s.ui, w = picture.clientWidth, h = picture.clientHeight;
  const n = scene.compute(state.v, numbers), answered = state.answer !== null, drawn = drawScene(s, w, h, time);
  const table = drawn.startsWith("<table");
  setHtml(picture, table ? drawn : `<svg role="img" aria-label="${words.title}"></svg>`);
  if (!table) {
    const svg = picture.firstChild;
    setAttribute(svg, "width", w);
    setAttribute(svg, "height", h);
    updateShapes(svg, drawn);
  }
  setHtml(s.ui.see, makeSentence(s));
  setHtml(s.ui.written, scene.findWritten?.(state.v, numbers) ?? "");
  for (const track of s.tracks) track.show();
  for (const button of s.root.querySelectorAll(".rv-choice button")) setAttribute(button, "aria-pressed", String(state.v[button.dataset.choice]) === button.value);
  const facts = { scene: s.at, ...Object.fromEntries(Object.entries(n).filter(([, value]) => !Array.isArray(value))), done: state.done, answered };
  s.facts = Object.keys(facts).map((key) => key.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()));
  Object.values(facts).forEach((value, i) => (s.root.dataset[s.facts[i]] = value));
  s.root.dataset.drawn = s.frames = (s.frames ?? 0) + 1;
  if (state.memory.isMoving) requestFrame(s);
}

// --- The parts of a scene

function showScene(s) {
  const { scene, state, numbers, words } = getCurrent(s), { data, ui } = s, { only, texts } = data, next = data.scenes[s.at];
  for (const key of s.facts ?? []) delete s.root.dataset[key];
  s.root.dataset.scene = s.at; // the height of the picture depends on it
  showSteps(s, false);
  setHtml(ui.sheet, "");
  const answers = words.answers.map((answer, i) => `<button type="button" data-do="answer" data-answer="${i}">${TICK}<span>${answer}</span></button>`).join("");
  const partHtml = (name, title, inside) => `<details class="rv-part rv-${name}" open><summary><h3>${title}</h3>${TICK}<span class="rv-short"></span></summary><div>${inside}</div></details>`;
  const link = words.link && data.app !== null ? `<a class="rv-explore" href="${data.app}${words.link.path}"${data.outside ? ' target="_blank"' : ""}>${words.link.label}</a>` : "";
  setHtml(ui.text, `<p class="rv-count">${fill(texts.count, { at: s.at, all: data.scenes.length })}</p><h2 tabindex="-1">${words.title}</h2><p class="rv-lead">${words.lead}</p>
    ${partHtml("predict", texts.predict, `<p>${words.question}</p><div class="rv-answers" role="group" aria-label="${texts.answers}">${answers}</div><p class="rv-why" role="status"></p>`)}
    ${partHtml("do", texts.do, `<p>${words.task}</p>${numbers.quiz ? '<div class="rv-quiz"></div>' : ""}`)}
    <div class="rv-words-of"></div>
    <section class="rv-part rv-see"><h3>${texts.see}</h3><p></p><div class="rv-written"></div></section>
    ${words.note ? `<p class="rv-note">${words.note}</p>` : ""}
    <details class="rv-maths"><summary>${texts.maths}</summary><div>${words.maths}</div></details>
    <div class="rv-extra">${link}${scene.playAt && canRecord && !only ? `<button type="button" data-do="video" title="${texts.video_help}">${texts.video}</button>` : ""}${data.embed ? `<button type="button" data-do="embed">${texts.embed}</button>` : ""}${only ? "" : `<button type="button" data-do="restart">${texts.restart}</button>`}</div><p class="rv-code" role="status" hidden></p>
    <div class="rv-way">${only ? `<a class="rv-next" href="${data.whole}" target="_blank">${texts.whole}</a>` : `<button type="button" data-do="back" aria-label="${texts.back}"${s.at === 1 ? " disabled" : ""}>←</button>
    ${next ? `<button type="button" class="rv-next" data-do="next">${s.at + 1}&ensp;${next.texts.short} →</button>` : `<button type="button" class="rv-next" data-do="sheet">${texts.sheet} →</button>`}`}</div>`);
  ui.text.__html = null;
  const find = (selector) => ui.text.querySelector(selector);
  Object.assign(ui, { see: find(".rv-see p"), written: find(".rv-written"), predict: find(".rv-predict"), task: find(".rv-do"), own: find(".rv-words-of"), quiz: find(".rv-quiz") });
  makeControls(s, scene, state, numbers, words);
  showProgress(s);
  if (numbers.quiz) showQuiz(s);
  paint(s);
}

// Mark the open scene and those that are finished.
function showSteps(s, isEnd) {
  s.isEnd = isEnd;
  s.root.toggleAttribute("data-end", isEnd);
  s.ui.steps.forEach((node, i) => {
    const isOpen = !isEnd && i + 1 === s.at;
    setAttribute(node, "aria-current", isOpen ? "step" : "false");
    node.disabled = isOpen;
    node.classList.toggle("rv-over", isComplete(s.states[i]));
  });
}

function showSheet(s) {
  s.recorder?.();
  showSteps(s, true);
  setHtml(s.ui.sheet, makeSheet(s, (at, w, h) => drawSmall(s, at, w, h)));
  s.ui.sheet.querySelector("h2").focus({ preventScroll: true });
  s.root.scrollIntoView();
}

function makeControls(s, scene, state, numbers, words) {
  const rows = scene.listTracks?.(numbers, words.picture) ?? [], host = {
    read: (name) => state.v[name],
    move: (name, value, how) => moveThumb(s, name, value, how),
    describe: () => stripTags(makeSentence(s)),
    nameColour: scene.nameColour && ((at) => scene.nameColour(at, state.v)),
  };
  s.tracks = rows.map((row) => makeTrack(row, host));
  s.thumbs = Object.fromEntries(rows.flatMap((row) => (row.ruler ? [row.ruler] : row.thumbs).map((thumb) => [thumb.name, { ...thumb, row }])));
  const choices = (scene.listButtons?.(numbers, words.picture) ?? []).map(({ name, label, options }) => `<div class="rv-choice" role="group" aria-label="${label}">${options.map(([value, text]) => `<button type="button" data-do="${name}" data-choice="${name}" value="${value}">${text}</button>`).join("")}</div>`);
  s.ui.controls.innerHTML = choices.length ? `<div class="rv-choices">${choices.join("")}</div>` : "";
  s.ui.controls.append(...s.tracks.map(({ root }) => root));
  s.ui.caption.innerHTML = words.picture.source ?? "";
  s.ui.own.replaceChildren(...(s.at === OWN ? [makeSentenceForm(s.data.texts, () => changeSentence(s))] : []));
}

// Show what is finished: the answer with its reason, the task, and the progress above.
function showProgress(s) {
  const { state, words } = getCurrent(s), { ui } = s, right = words.right;
  // Before the answer nothing can be moved, and what would give it away is hidden.
  s.root.toggleAttribute("data-unanswered", (ui.controls.inert = state.answer === null));
  ui.predict.classList.toggle("rv-finished", state.answer !== null);
  ui.task.classList.toggle("rv-finished", state.done);
  ui.predict.querySelectorAll("[data-answer]").forEach((node, i) => {
    setAttribute(node, "aria-pressed", i === state.answer);
    node.classList.toggle("rv-right", state.answer !== null && i === right);
    node.classList.toggle("rv-wrong", state.answer === i && i !== right);
  });
  const why = ui.predict.querySelector(".rv-why");
  setHtml(why, state.answer === null ? "" : words.why);
  setHtml(ui.predict.querySelector(".rv-short"), state.answer === null ? "" : words.answers[right]);
  // On a phone a finished step becomes one line, so that the picture and the current step are seen together.
  if (matchMedia("(max-width: 760px)").matches && state.done && state.answer !== null && !ui.quiz) ui.predict.open = ui.task.open = false;
  showSteps(s, false);
  if (state.answer !== null) store(s);
}

function showQuiz(s) {
  const { state, numbers, words } = getCurrent(s), { texts } = s.data, { quiz } = numbers, i = state.open, { question, answers, right, why } = quiz[i], given = state.quiz[i];
  setHtml(s.ui.quiz, `<p class="rv-count">${fill(texts.quiz_count, { at: i + 1, all: quiz.length })}</p><p>${question}</p>
    <div class="rv-answers rv-tall" role="group" aria-label="${texts.answers}">${answers.map((answer, k) => `<button type="button" data-do="quiz" data-quiz="${k}" aria-pressed="${k === given}" class="${given === null ? "" : k === right ? "rv-right" : k === given ? "rv-wrong" : ""}">${TICK}<span>${answer}</span></button>`).join("")}</div>
    <p class="rv-why" role="status">${given === null ? "" : why}</p>
    ${given === null ? "" : i + 1 < quiz.length ? `<button type="button" class="rv-more" data-do="more">${texts.quiz_next}</button>` : `<button type="button" class="rv-more" data-do="sheet">${texts.sheet}</button>`}`);
}

// --- What the user does

function openScene(s, to, isUsers = true) {
  if (to < 1 || to > s.data.scenes.length || (to === s.at && !s.isEnd) || s.data.only) return;
  s.recorder?.();
  store(s);
  const isStep = isUsers && to !== s.at;
  s.at = to;
  if (isStep && s.place.send) {
    s.reported.push(to);
    s.place.send("scene", to);
  } else if (isStep) location.hash = `scene=${to}`;
  readSentence(); // the address keeps it
  showScene(s);
  s.ui.text.querySelector("h2").focus({ preventScroll: true });
  const { top } = s.root.getBoundingClientRect();
  if (top < 0) s.root.scrollIntoView();
}

function onClick(s, target) {
  const { state } = getCurrent(s), button = target.closest("button, a");
  if (!button) return;
  const { answer, quiz, choice, step, do: name } = button.dataset;
  if (step) openScene(s, Number(step));
  else if (name === "next") openScene(s, s.at + 1);
  else if (name === "back") openScene(s, s.isEnd ? s.at : s.at - 1);
  else if (name === "sheet") showSheet(s);
  else if (name === "save") saveSheet(s, (at, w, h) => drawSmall(s, at, w, h));
  else if (name === "restart") restart(s);
  else if (name === "more") {
    state.open += 1;
    showQuiz(s);
    s.ui.quiz.querySelector("button").focus();
  } else if (name === "embed") copyEmbed(s);
  else if (name === "video") recordOrStop(s, button);
  else if (choice) {
    state.v[choice] = button.value;
    s.userMoved = true;
    SCENES[s.at - 1].onChoice?.(state.v, choice, button.value);
    checkTask(s);
  } else if (answer !== undefined) {
    state.answer = Number(answer);
    showProgress(s);
    requestFrame(s);
  } else if (quiz !== undefined && state.quiz[state.open] === null) {
    state.quiz[state.open] = Number(quiz);
    store(s);
    showQuiz(s);
    (s.ui.quiz.querySelector("[data-do=more]") ?? s.ui.quiz).focus();
    checkTask(s);
  }
}

// Record a video of the scene; a second press ends it.
function recordOrStop(s, button) {
  if (s.recorder) return s.recorder();
  const { texts } = s.data, onEnd = () => {
    s.recorder = null;
    button.textContent = texts.video;
    requestFrame(s);
  };
  button.textContent = texts.stop;
  s.recorder = recordScene(s, getCurrent(s), { draw: (w, h) => drawScene(s, w, h), sentence: () => stripTags(makeSentence(s)), onMove: () => requestFrame(s), onEnd });
}

function copyEmbed(s) {
  const { texts, embed } = s.data, address = new URL(`${embed}${s.at}`, s.place.makeAddress ? s.place.makeAddress().split("rope-viz/")[0] : location.href).href;
  const code = `<iframe src="${address}" title="${getCurrent(s).words.title}" width="100%" height="640" style="border:0"></iframe>`, note = s.ui.text.querySelector(".rv-code");
  navigator.clipboard?.writeText(code).catch(() => {});
  note.hidden = false;
  note.innerHTML = `${texts.embed_done} <code></code> ${texts.embed_host}`;
  note.querySelector("code").textContent = code;
}

function listenToDrags(s, picture) {
  let isHeld = false;
  const dragTo = ({ clientX, clientY }, how) => {
    const { scene, state, numbers } = getCurrent(s), box = picture.getBoundingClientRect();
    const found = scene.findDrag?.({ x: clientX - box.left, y: clientY - box.top, w: box.width, h: box.height, v: state.v }, numbers);
    if (found) moveThumb(s, ...found, how ?? (s.thumbs[found[0]].whole ? "step" : "free"));
  };
  picture.addEventListener("pointerdown", (event) => {
    if (event.button || !getCurrent(s).scene.findDrag || getCurrent(s).state.answer === null) return;
    event.preventDefault();
    picture.setPointerCapture(event.pointerId);
    isHeld = true;
    dragTo(event);
  });
  picture.addEventListener("pointermove", (event) => isHeld && dragTo(event));
  for (const kind of ["pointerup", "pointercancel"]) picture.addEventListener(kind, (event) => isHeld && ((isHeld = false), kind === "pointerup" && dragTo(event, "step")));
}

// --- The component

function build(place, data) {
  const { root } = place, steps = data.scenes.map(({ texts: { short } }, i) => `<li><button type="button" data-do="step" data-step="${i + 1}"><i></i><span>${i + 1}&ensp;${short}</span><b class="rv-finished-too">${data.texts.finished}</b></button></li>`).join("");
  root.innerHTML = `<nav class="rv-steps" aria-label="${data.texts.steps}"${data.only ? " hidden" : ""}><ol>${steps}</ol></nav><div class="rv-stage"><div class="rv-show"><div class="rv-picture-of"></div><p class="rv-first">${data.texts.first}</p><div class="rv-controls"></div><p class="rv-caption"></p></div><div class="rv-text"></div></div><div class="rv-sheet"></div>`;
  const find = (selector) => root.querySelector(selector);
  const s = place.memory.learn ?? makeState(data);
  place.memory.learn = s;
  Object.assign(s, { root, place, reported: [], reducedMotion: matchMedia("(prefers-reduced-motion: reduce)"), request: 0 });
  s.ui = { steps: [...root.querySelectorAll("[data-step]")], picture: find(".rv-picture-of"), controls: find(".rv-controls"), caption: find(".rv-caption"), text: find(".rv-text"), sheet: find(".rv-sheet") };
  root.addEventListener("click", ({ target }) => onClick(s, target));
  listenToDrags(s, s.ui.picture);
  new ResizeObserver(() => s.data && requestFrame(s)).observe(s.ui.picture);
  addEventListener("pagehide", () => store(s));
  if (!place.send) addEventListener("hashchange", () => openScene(s, readHash() ?? data.scene, false));
  return s;
}

const readHash = () => Number(/scene=([1-8])\b/.exec(location.hash)?.[1]) || null;

export default function show(place, given) {
  const first = !place.root.__learn, data = useOwnWords(given), s = place.root.__learn ?? build(place, data);
  place.root.__learn = s;
  const isSameData = s.given === given;
  Object.assign(s, { given, data });
  for (const [name, both] of Object.entries(data.palette)) s.root.style.setProperty(`--${name}`, both[isDark(s.root) ? 1 : 0]);
  // With the same data only the colours are new.
  if (isSameData && !first) return requestFrame(s);
  // A late answer of the server to the user's own step must not undo it.
  const late = s.reported.indexOf(data.scene), requested = place.send ? data.scene : data.only || readHash() || data.scene;
  if (late >= 0) s.reported.splice(0, late + 1);
  else if (first || requested !== s.at) s.at = requested;
  else return requestFrame(s);
  if (late < 0 || first) showScene(s);
}

addStyle(STYLE);
