// The state of Learn: of every scene the values of its sliders, the answer and whether its task is done; and what a scene
// draws and says with it.

import { escapeHtml } from "./element.js";
import { clamp, fill } from "./learn_kit.js";
import { HANDS } from "./learn_hands.js";
import { LENGTHS } from "./learn_lengths.js";
import { readSentence } from "./sentence.js";

export const SCENES = [...HANDS, ...LENGTHS];
// The scene that takes the user's own sentence.
export const OWN = 3;

export function makeState(data) {
  const stored = readStored(data), states = data.scenes.map(({ numbers }, i) => ({ v: makeStart(i, numbers), answer: null, done: false, quiz: (numbers.quiz ?? []).map(() => null), memory: {}, open: 0 }));
  states.forEach((state, i) => Object.assign(state, stored[i]));
  return { states, at: data.only || data.scene, reported: [] };
}

// Answers and finished scenes outlive Back and a reload in this tab's storage.
const KEY = "rope-viz.learn";
function openStore() {
  try {
    return sessionStorage;
  } catch {
    return null; // the browser may forbid storage
  }
}

// Read what was stored, of each scene only values that can be its own.
function readStored({ scenes, only }) {
  let found = null;
  try {
    found = only ? null : JSON.parse(openStore()?.getItem(KEY) ?? "null");
  } catch {
    // Somebody else wrote it.
  }
  if (!Array.isArray(found) || found.length !== scenes.length) return [];
  const isAnswer = (value) => value === null || [0, 1, 2].includes(value);
  return found.map(({ v, answer, done, quiz, open } = {}, i) => {
    const { numbers } = scenes[i], start = makeStart(i, numbers), count = numbers.quiz?.length ?? 0;
    const isSame = v && Object.keys(start).every((name) => typeof v[name] === typeof start[name] && (typeof start[name] === "string" || Number.isFinite(v[name])));
    const isQuiz = Array.isArray(quiz) && quiz.length === count && quiz.every(isAnswer);
    return isSame && isQuiz && isAnswer(answer) ? { v: Object.fromEntries(Object.keys(start).map((name) => [name, v[name]])), answer, done: done === true, quiz, open: clamp(Math.trunc(open) || 0, 0, Math.max(0, count - 1)) } : null;
  });
}

export const forget = () => openStore()?.removeItem(KEY);

export function store(s) {
  if (s.data.only) return;
  try {
    openStore()?.setItem(KEY, JSON.stringify(s.states.map(({ v, answer, done, quiz, open }) => ({ v, answer, done, quiz, open }))));
  } catch {
    // It is full: the answers last until the page is left.
  }
}

export const stripTags = (html) => html.replace(/<[^>]*>/g, "");
const makeStart = (i, numbers) => ({ ...(typeof SCENES[i].start === "function" ? SCENES[i].start(numbers) : SCENES[i].start) });
export const getCurrent = (s, at = s.at) => ({ scene: SCENES[at - 1], state: s.states[at - 1], words: s.data.scenes[at - 1].texts, numbers: s.data.scenes[at - 1].numbers });
export const isComplete = ({ answer, done }) => answer !== null && done;

// Put two words of the own sentence in place of the scene's, in its numbers and texts.
export function useOwnWords(data) {
  const found = readSentence();
  if (!found) return data;
  const scenes = [...data.scenes], { numbers, texts } = scenes[OWN - 1], words = found.two.map((at) => found.words[at]);
  const replaceWords = (value) => (typeof value === "string" ? value.replace(/“(\w+)”/g, (quoted, word) => { const at = numbers.words.indexOf(word); return at < 0 ? quoted : `“<bdi>${escapeHtml(words[at])}</bdi>”`; })
    : Array.isArray(value) ? value.map(replaceWords) : value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaceWords(each)])) : value);
  const { picture, ...others } = texts;
  const labels = Object.fromEntries(Object.entries(picture).map(([key, text]) => [key, stripTags(replaceWords(text))]));
  scenes[OWN - 1] = { numbers: { ...numbers, words, start: found.two }, texts: { ...replaceWords(others), picture: labels } };
  return { ...data, scenes };
}

// Return the picture of the scene as SVG for a width and a height, or as a table.
export function drawScene(s, w, h, time = performance.now()) {
  const { scene, ...current } = getCurrent(s);
  return scene.draw(describePicture(s, scene, current, { w, h, memory: current.state.memory, reducedMotion: s.reducedMotion.matches, now: time }));
}

// Return the picture of any scene as SVG at rest, for the sheet.
export function drawSmall(s, at, w, h) {
  const { scene, ...current } = getCurrent(s, at);
  return (scene.drawSmall ?? scene.draw)(describePicture(s, scene, current, { w, h, memory: {}, reducedMotion: true, now: 0 }));
}

const describePicture = (s, scene, { state, numbers, words }, more) => ({ v: state.v, n: scene.compute(state.v, numbers), data: numbers, texts: words.picture, answered: state.answer !== null, ...more });

// Return the scene's sentence as HTML with the current numbers.
export function makeSentence(s) {
  const { scene, state, numbers, words: { see } } = getCurrent(s), n = scene.compute(state.v, numbers);
  return fill(see[n.see ?? "see"] ?? see.see, n);
}
