// Learn: eight scenes, each with a picture that the user moves, a prediction, a task and a sentence with the current numbers.
// rope_viz/figures/learn.py packs their numbers and texts. On a page of its own, `place` has little more than a root.

import { addStyle, dark } from "./circle.js";
import { clamp, fill, makeTrack, put, set } from "./learn_kit.js";
import { HANDS } from "./learn_hands.js";
import { LENGTHS } from "./learn_lengths.js";
import { STYLE } from "./learn_style.js";

const SCENES = [...HANDS, ...LENGTHS];
const TICK = '<svg class="rv-tick" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="M2 8.5l4 4 8-9" fill="none" stroke="currentColor" stroke-width="2"/></svg>';

// --- State: of every scene the values of its sliders, the answer and whether its task is done

function start(data) {
  const states = data.scenes.map(({ numbers }, i) => ({ v: { ...(typeof SCENES[i].start === "function" ? SCENES[i].start(numbers) : SCENES[i].start) }, answer: null, done: false, quiz: (numbers.quiz ?? []).map(() => null), memory: {}, open: 0 }));
  return { states, at: data.only || data.scene, told: [] };
}

const now = (s) => ({ scene: SCENES[s.at - 1], state: s.states[s.at - 1], words: s.data.scenes[s.at - 1].texts, numbers: s.data.scenes[s.at - 1].numbers });
const complete = ({ answer, done }) => answer !== null && done;

function move(s, name, value, how) {
  const { scene, state, numbers } = now(s), { v } = state, thumb = s.thumbs[name];
  const [low, high] = scene.limits?.(v, numbers)[name] ?? [thumb.least ?? thumb.row?.low ?? 0, thumb.most ?? thumb.row?.high];
  const step = how === "step" ? (scene.round ?? ((each) => (thumb.whole && thumb.step > 1 ? Math.round(each) : Math.round(each / (thumb.step ?? 1)) * (thumb.step ?? 1))))(value) : value;
  v[name] = clamp(step, low, high);
  after(s);
}

function after(s) {
  const { scene, state, numbers } = now(s);
  if (!state.done && scene.done(state.v, numbers, state)) {
    state.done = true;
    finish(s);
  }
  wake(s);
}

// --- Painting

function wake(s) {
  s.request ||= requestAnimationFrame((time) => {
    s.request = 0;
    if (s.root.isConnected && s.ui.picture.clientWidth) paint(s, time);
  });
}

function paint(s, time = performance.now()) {
  const { scene, state, numbers, words } = now(s), { picture } = s.ui, w = picture.clientWidth, h = picture.clientHeight;
  const n = scene.numbers(state.v, numbers), texts = words.picture, answered = state.answer !== null;
  const drawn = scene.draw({ w, h, v: state.v, n, data: numbers, texts, answered, memory: state.memory, calm: s.calm.matches, now: time });
  const see = fill((!answered && words.see.before) || (words.see[n.see ?? "see"] ?? words.see.see), n);
  put(picture, drawn.startsWith("<table") ? drawn : `<svg width="${w}" height="${h}" role="img" aria-label="${words.title}">${drawn}</svg>`);
  put(s.ui.see, see);
  for (const track of s.tracks) track.show();
  for (const button of s.root.querySelectorAll(".rv-choice button")) set(button, "aria-pressed", String(state.v[button.dataset.choice]) === button.value);
  const facts = { scene: s.at, ...Object.fromEntries(Object.entries(n).filter(([, value]) => !Array.isArray(value))), done: state.done, answered };
  s.facts = Object.keys(facts).map((key) => key.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()));
  Object.values(facts).forEach((value, i) => (s.root.dataset[s.facts[i]] = value));
  s.root.dataset.drawn = s.frames = (s.frames ?? 0) + 1;
  if (state.memory.again) wake(s);
}

// --- The parts of a scene

function showScene(s) {
  const { scene, state, numbers, words } = now(s), { data, ui } = s, { only, texts } = data, next = data.scenes[s.at];
  for (const key of s.facts ?? []) delete s.root.dataset[key];
  ui.steps.forEach((node, i) => {
    set(node, "aria-current", i + 1 === s.at ? "step" : "false");
    node.disabled = i + 1 === s.at;
    node.classList.toggle("rv-over", complete(s.states[i]));
  });
  const answers = words.answers.map((answer, i) => `<button type="button" data-do="answer" data-answer="${i}">${TICK}<span>${answer}</span></button>`).join("");
  const part = (name, title, inside) => `<details class="rv-part rv-${name}" open><summary><h3>${title}</h3>${TICK}<span class="rv-short"></span></summary><div>${inside}</div></details>`;
  const link = words.link && data.app !== null ? `<a class="rv-explore" href="${data.app}${words.link.path}"${data.outside ? ' target="_blank"' : ""}>${words.link.label}</a>` : "";
  put(ui.text, `<p class="rv-count">${fill(texts.count, { at: s.at, all: data.scenes.length })}</p><h2 tabindex="-1">${words.title}</h2><p class="rv-lead">${words.lead}</p>
    ${part("predict", texts.predict, `<p>${words.question}</p><div class="rv-answers" role="group" aria-label="${texts.answers}">${answers}</div><p class="rv-why" role="status"></p>`)}
    ${part("do", texts.do, `<p>${words.task}</p>${numbers.quiz ? '<div class="rv-quiz"></div>' : ""}`)}
    <section class="rv-part rv-see"><h3>${texts.see}</h3><p></p></section>
    ${words.note ? `<p class="rv-note">${words.note}</p>` : ""}
    <details class="rv-maths"><summary>${texts.maths}</summary><div>${words.maths}</div></details>
    <div class="rv-extra">${link}${data.embed ? `<button type="button" data-do="embed">${texts.embed}</button>` : ""}</div><p class="rv-code" role="status" hidden></p>
    <div class="rv-way">${only ? `<a class="rv-next" href="${data.whole}" target="_blank">${texts.whole}</a>` : `<button type="button" data-do="back" aria-label="${texts.back}"${s.at === 1 ? " disabled" : ""}>←</button>
    ${next ? `<button type="button" class="rv-next" data-do="next">${s.at + 1}&ensp;${next.texts.short} →</button>` : data.app === null ? "" : `<a class="rv-next" href="${data.app}/model">${texts.own} →</a>`}`}</div>`);
  ui.text.__html = null;
  const find = (selector) => ui.text.querySelector(selector);
  Object.assign(ui, { see: find(".rv-see p"), predict: find(".rv-predict"), task: find(".rv-do"), quiz: find(".rv-quiz") });
  ui.see.__html = null;
  makeControls(s, scene, state, numbers, words);
  finish(s);
  if (numbers.quiz) showQuiz(s);
  paint(s);
}

function makeControls(s, scene, state, numbers, words) {
  const rows = scene.rows?.(numbers, words.picture) ?? [], host = {
    read: (name) => state.v[name],
    move: (name, value, how) => move(s, name, value, how),
    say: () => fill(words.see[scene.numbers(state.v, numbers).see ?? "see"] ?? words.see.see, scene.numbers(state.v, numbers)).replace(/<[^>]*>/g, ""),
    mark: scene.mark && ((at) => scene.mark(at, state.v)),
  };
  s.tracks = rows.map((row) => makeTrack(row, host));
  s.thumbs = Object.fromEntries(rows.flatMap((row) => (row.ruler ? [row.ruler] : row.thumbs).map((thumb) => [thumb.name, { ...thumb, row }])));
  const choices = (scene.buttons?.(numbers, words.picture) ?? []).map(({ name, label, options }) => `<div class="rv-choice" role="group" aria-label="${label}">${options.map(([value, text]) => `<button type="button" data-do="${name}" data-choice="${name}" value="${value}">${text}</button>`).join("")}</div>`);
  s.ui.controls.innerHTML = choices.length ? `<div class="rv-choices">${choices.join("")}</div>` : "";
  s.ui.controls.append(...s.tracks.map(({ root }) => root));
  s.ui.caption.innerHTML = words.picture.source ?? "";
}

// Show what is finished: the answer with its reason, the task, and the progress above.
function finish(s) {
  const { state, words } = now(s), { ui } = s, right = words.right;
  ui.predict.classList.toggle("rv-finished", state.answer !== null);
  ui.task.classList.toggle("rv-finished", state.done);
  ui.predict.querySelectorAll("[data-answer]").forEach((node, i) => {
    set(node, "aria-pressed", i === state.answer);
    node.classList.toggle("rv-right", state.answer !== null && i === right);
    node.classList.toggle("rv-wrong", state.answer === i && i !== right);
  });
  const why = ui.predict.querySelector(".rv-why");
  put(why, state.answer === null ? "" : words.why);
  put(ui.predict.querySelector(".rv-short"), state.answer === null ? "" : words.answers[right]);
  // On a phone a finished step becomes one line, so that the picture and the current step are seen together.
  if (matchMedia("(max-width: 760px)").matches && state.done && state.answer !== null && !ui.quiz) ui.predict.open = ui.task.open = false;
  ui.steps[s.at - 1]?.classList.toggle("rv-over", complete(state));
}

function showQuiz(s) {
  const { state, numbers, words } = now(s), { texts } = s.data, { quiz } = numbers, i = state.open, { question, answers, right, why } = quiz[i], given = state.quiz[i];
  const score = quiz.filter(({ right }, k) => state.quiz[k] === right).length;
  put(s.ui.quiz, `<p class="rv-count">${fill(texts.quiz_count, { at: i + 1, all: quiz.length })}</p><p>${question}</p>
    <div class="rv-answers rv-tall" role="group" aria-label="${texts.answers}">${answers.map((answer, k) => `<button type="button" data-do="quiz" data-quiz="${k}" aria-pressed="${k === given}" class="${given === null ? "" : k === right ? "rv-right" : k === given ? "rv-wrong" : ""}">${TICK}<span>${answer}</span></button>`).join("")}</div>
    <p class="rv-why" role="status">${given === null ? "" : why}</p>
    ${given === null ? "" : i + 1 < quiz.length ? `<button type="button" class="rv-more" data-do="more">${texts.quiz_next}</button>` : `<p><b>${fill(texts.quiz_end, { score, all: quiz.length })}</b></p>`}`);
}

// --- What the user does

function go(s, to, told = true) {
  if (to < 1 || to > s.data.scenes.length || to === s.at || s.data.only) return;
  s.at = to;
  if (told && s.place.tell) {
    s.told.push(to);
    s.place.tell("scene", to);
  } else if (told) location.hash = `scene=${to}`;
  showScene(s);
  s.ui.text.querySelector("h2").focus({ preventScroll: true });
  const { top } = s.root.getBoundingClientRect();
  if (top < 0) s.root.scrollIntoView();
}

function act(s, target) {
  const { state } = now(s), button = target.closest("button, a");
  if (!button) return;
  const { answer, quiz, choice, step, do: does } = button.dataset;
  if (step) go(s, Number(step));
  else if (does === "next") go(s, s.at + 1);
  else if (does === "back") go(s, s.at - 1);
  else if (does === "more") {
    state.open += 1;
    showQuiz(s);
    s.ui.quiz.querySelector("button").focus();
  } else if (does === "embed") copyEmbed(s);
  else if (choice) {
    state.v[choice] = button.value;
    SCENES[s.at - 1].moved?.(state.v, choice, button.value);
    after(s);
  } else if (answer !== undefined) {
    state.answer = Number(answer);
    finish(s);
    wake(s);
  } else if (quiz !== undefined && state.quiz[state.open] === null) {
    state.quiz[state.open] = Number(quiz);
    showQuiz(s);
    (s.ui.quiz.querySelector("[data-do=more]") ?? s.ui.quiz).focus();
    after(s);
  }
}

function copyEmbed(s) {
  const { texts, embed } = s.data, address = new URL(`${embed}${s.at}`, s.place.address ? s.place.address().split("rope-viz/")[0] : location.href).href;
  const code = `<iframe src="${address}" title="${now(s).words.title}" width="100%" height="640" style="border:0"></iframe>`, note = s.ui.text.querySelector(".rv-code");
  navigator.clipboard?.writeText(code).catch(() => {});
  note.hidden = false;
  note.innerHTML = `${texts.embed_done} <code></code> ${texts.embed_host}`;
  note.querySelector("code").textContent = code;
}

function grab(s, picture) {
  let held = false;
  const drag = ({ clientX, clientY }, how) => {
    const { scene, state, numbers } = now(s), box = picture.getBoundingClientRect();
    const found = scene.grab?.({ x: clientX - box.left, y: clientY - box.top, w: box.width, h: box.height, v: state.v }, numbers);
    if (found) move(s, ...found, how ?? (s.thumbs[found[0]].whole ? "step" : "free"));
  };
  picture.addEventListener("pointerdown", (event) => {
    if (event.button || !now(s).scene.grab) return;
    event.preventDefault();
    picture.setPointerCapture(event.pointerId);
    held = true;
    drag(event);
  });
  picture.addEventListener("pointermove", (event) => held && drag(event));
  for (const kind of ["pointerup", "pointercancel"]) picture.addEventListener(kind, (event) => held && ((held = false), kind === "pointerup" && drag(event, "step")));
}

// --- The component

function build(place, data) {
  const { root } = place, steps = data.scenes.map(({ texts: { short } }, i) => `<li><button type="button" data-do="step" data-step="${i + 1}"><i></i><span>${i + 1}&ensp;${short}</span></button></li>`).join("");
  root.innerHTML = `<nav class="rv-steps" aria-label="${data.texts.steps}"${data.only ? " hidden" : ""}><ol>${steps}</ol></nav><div class="rv-stage"><div class="rv-show"><div class="rv-picture-of"></div><div class="rv-controls"></div><p class="rv-caption"></p></div><div class="rv-text"></div></div>`;
  const find = (selector) => root.querySelector(selector);
  const s = place.memory.learn ?? start(data);
  place.memory.learn = s;
  Object.assign(s, { root, place, told: [], calm: matchMedia("(prefers-reduced-motion: reduce)"), request: 0 });
  s.ui = { steps: [...root.querySelectorAll("[data-step]")], picture: find(".rv-picture-of"), controls: find(".rv-controls"), caption: find(".rv-caption"), text: find(".rv-text") };
  root.addEventListener("click", ({ target }) => act(s, target));
  grab(s, s.ui.picture);
  new ResizeObserver(() => s.data && wake(s)).observe(s.ui.picture);
  if (!place.tell) addEventListener("hashchange", () => go(s, fromHash() ?? data.scene, false));
  return s;
}

const fromHash = () => Number(/scene=([1-8])\b/.exec(location.hash)?.[1]) || null;

export default function show(place, data) {
  const first = !place.root.__learn, s = place.root.__learn ?? build(place, data);
  place.root.__learn = s;
  const again = s.data === data;
  s.data = data;
  for (const [name, both] of Object.entries(data.palette)) s.root.style.setProperty(`--${name}`, both[dark(s.root) ? 1 : 0]);
  // The server's late answer to the user's own step must not take it back.
  // Shown again in other colours, it keeps its scene.
  if (again && !first) return wake(s);
  const late = s.told.indexOf(data.scene), asked = place.tell ? data.scene : data.only || fromHash() || data.scene;
  if (late >= 0) s.told.splice(0, late + 1);
  else if (first || asked !== s.at) s.at = asked;
  else return wake(s);
  if (late < 0 || first) showScene(s);
}

addStyle(STYLE);
