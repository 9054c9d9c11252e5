// The look of Home's picture: words, ruler and sentence next to the circle; on a phone the circle above.

import { SENTENCE_STYLE } from "./sentence.js";

export const STYLE = `
.rv-hands {
  display: grid; grid-template: auto auto 1fr / minmax(0, 648px) minmax(0, 1fr); column-gap: 48px; align-items: start;
  font-family: var(--st-font); color: var(--text); font-variant-numeric: tabular-nums;
  .rv-circle { grid-area: 1 / 2 / 4 / 3; margin-top: calc(-1 * var(--rv-above, 0px)); }
  canvas { display: block; width: 100%; }
  .rv-circle canvas { height: clamp(400px, 100vh - 300px, 500px); }
  .rv-words { position: relative; height: 84px; font-size: 18px; contain: size layout; }
  .rv-word { position: absolute; left: 0; bottom: 0; width: var(--cell); height: 48px; display: grid; place-items: center; transition: transform 0.15s; }
  .rv-word i { font-style: normal; white-space: nowrap; }
  .rv-word[role] { z-index: 1; transition: none; will-change: transform; cursor: grab; touch-action: pan-y; user-select: none; }
  .rv-word[role] i { display: grid; place-items: center; min-width: calc(100% - 6px); height: 42px; padding: 0 4px; box-sizing: border-box; border-radius: 8px; font-weight: 600; color: var(--background); }
  .rv-word.rv-query i { background: var(--query); }
  .rv-word.rv-key i { background: var(--key); }
  .rv-apart > * { position: absolute; left: 0; top: 16px; width: 2px; height: 16px; background: var(--text); transform-origin: 0 0; will-change: transform; }
  .rv-apart :first-child { width: 1px; height: 2px; }
  .rv-apart b { top: 4px; translate: -50%; width: auto; height: auto; padding: 0 8px; font-size: 15px; line-height: 24px; white-space: nowrap; background: linear-gradient(var(--background), var(--background)) 50% / calc(100% - 4px) no-repeat; }
  .rv-ruler { margin-top: 6px; border-top: 2px solid var(--rule); border-radius: 0 0 8px 8px; background: color-mix(in srgb, var(--face) 55%, transparent); cursor: ew-resize; touch-action: pan-y; user-select: none; }
  .rv-ruler:hover, &[data-held=ruler] .rv-ruler { background: var(--face); }
  .rv-ruler canvas { height: 36px; pointer-events: none; }
  &[data-held] :is(.rv-word, .rv-ruler) { cursor: grabbing; }
  [role=slider]:focus-visible { outline: 2px solid var(--query); outline-offset: 2px; border-radius: 8px; }
  .rv-hint { margin: 8px 0 0; font-size: 15px; color: var(--plain); }
  .rv-hint span + span { display: none; }
${SENTENCE_STYLE}
  /* Words of any length; clipping costs frames, so the usual sentence has none. */
  &[data-own] .rv-word i { max-width: 100%; overflow: hidden; text-overflow: ellipsis; }
  &[data-own] .rv-word[role] i { display: block; max-width: 130px; line-height: 42px; text-align: center; }
  .rv-room { height: 44px; }
  .rv-now { margin: 16px 0 0; padding: 0; contain: layout; min-height: 58px; font-size: 18px; line-height: 29px; }
  .rv-now .rv-query { color: var(--query); }
  .rv-now .rv-key { color: var(--key); }
  .rv-bar { display: flex; gap: 12px; align-items: center; margin-top: 16px; padding: 0; }
  .rv-bar p { flex: 1; margin: 0; font-size: 15px; line-height: 21px; color: var(--plain); }
  [role=group] { display: flex; flex: none; }
  .rv-bar > button, [role=group] button { flex: none; height: 40px; min-width: 48px; padding: 0 12px; font: inherit; font-size: 15px; color: inherit; background: transparent; border: 1px solid var(--rule); border-radius: 0; cursor: pointer; }
  .rv-bar button[data-do=play] { min-width: 76px; border-radius: 8px; }
  [role=group] button + button { border-left: 0; }
  [role=group] button:first-child { border-radius: 8px 0 0 8px; }
  [role=group] button:last-child { border-radius: 0 8px 8px 0; }
  [role=group] [aria-pressed=true] { color: var(--query); font-weight: 600; background: color-mix(in srgb, var(--query) 10%, transparent); }
  @media (prefers-reduced-motion: reduce) { .rv-word { transition: none; } }
  @media (max-width: 900px) {
    grid-template: auto / minmax(0, 1fr);
    .rv-circle { grid-area: 1 / 1; margin: 0; }
    .rv-circle canvas { height: 320px; }
  }
  @media (max-width: 640px) {
    .rv-circle canvas { height: 208px; }
    .rv-words { height: 74px; margin-top: 4px; font-size: 15px; }
    .rv-word { height: 42px; }
    .rv-word[role] i { height: 40px; padding: 0; border-radius: 6px; }
    .rv-ruler { margin-top: 4px; }
    .rv-ruler canvas { height: 40px; }
    .rv-hint { margin-top: 4px; font-size: 14px; line-height: 20px; }
    .rv-hint span { display: none; }
    .rv-hint span + span { display: inline; }
    .rv-now { margin-top: 8px; font-size: 16px; line-height: 23px; min-height: 69px; }
    .rv-bar { margin-top: 10px; gap: 8px; }
    .rv-bar p { display: none; }
    &[data-own] .rv-word[role] i { max-width: 62px; line-height: 40px; }
    .rv-own { margin-top: 0; }
    .rv-room { height: 40px; }
  }
}
`;
