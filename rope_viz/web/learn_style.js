// The look of Learn: picture and text next to each other; on a phone the picture above, sticky, and Next at the bottom.

import { SENTENCE_STYLE } from "./sentence.js";

export const STYLE = `
.rv-learn {
  font-family: var(--st-font); color: var(--text); font-size: 16px; line-height: 24px; font-variant-numeric: tabular-nums;
  :is(p, h2, h3, ol, ul, li, table) { margin: 0; padding: 0; font-size: inherit; line-height: inherit; }
  :is(h2, h3) { margin: 0 !important; padding: 0 !important; font-family: inherit !important; letter-spacing: -0.01em; }
  .rv-picture-of text { paint-order: stroke; stroke: var(--background); stroke-width: 4px; stroke-linejoin: round; }
  svg text { font-family: var(--st-font); user-select: none; }
  button, a.rv-next { font: inherit; color: inherit; cursor: pointer; background: transparent; }
  :is(button, a, summary, [role=slider]):focus-visible { outline: 2px solid var(--query); outline-offset: 2px; border-radius: 8px; }
  h2:focus { outline: none; }
  .rv-query { color: var(--query); font-weight: 600; }
  .rv-key { color: var(--key); font-weight: 600; }
  .rv-steps ol { display: flex; gap: 6px; list-style: none; }
  .rv-steps li { flex: 1; min-width: 0; margin: 0; }
  .rv-steps button { display: block; width: 100%; min-height: 44px; padding: 0; border: 0; text-align: left; font-size: 14px; line-height: 20px; color: var(--plain); }
  .rv-steps span { display: block; height: 20px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
  .rv-steps i { display: block; height: 4px; margin-bottom: 8px; background: var(--face); }
  .rv-steps .rv-over i { background: color-mix(in srgb, var(--query) 50%, var(--background)); }
  .rv-steps [aria-current=step] { color: var(--text); font-weight: 600; }
  .rv-steps [aria-current=step] i { background: var(--query); }
  .rv-steps button { position: relative; }
  .rv-steps .rv-over::after { content: "✓" / ""; position: absolute; right: 2px; top: 11px; font-weight: 700; color: var(--kept); }
  .rv-steps .rv-over span { margin-right: 20px; }
  .rv-finished-too { display: none; position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .rv-over .rv-finished-too { display: block; }
  .rv-sheet { display: none; margin-top: 20px; }
  &[data-end] { .rv-stage { display: none; } .rv-sheet { display: block; } }
  .rv-again { list-style: disc; margin: 12px 0 0 20px; li { margin: 4px 0; } }
  .rv-again button { min-height: 40px; padding: 0; border: 0; color: var(--query); text-decoration: underline; text-underline-offset: 3px; text-align: left; }
  .rv-eight { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 24px; margin-top: 20px; list-style: none; li { margin: 0; } }
  .rv-eight button { display: block; width: 100%; padding: 8px; border: 1px solid var(--face); border-radius: 8px; text-align: left; }
  .rv-eight button:hover { border-color: var(--query); }
  .rv-eight b { display: block; height: 24px; margin-bottom: 8px; overflow: hidden; font-weight: 600; white-space: nowrap; text-overflow: ellipsis; }
  .rv-eight svg { display: block; width: 100%; height: auto; }
  .rv-eight text { paint-order: stroke; stroke: var(--background); stroke-width: 4px; stroke-linejoin: round; }
  .rv-cite { margin-top: 20px; font-size: 15px; overflow-wrap: anywhere; user-select: text; }
  .rv-steps button:disabled { opacity: 1; cursor: default; }
  .rv-steps button:hover i { background: var(--query); }
  .rv-stage { display: grid; grid-template-columns: minmax(0, 1.45fr) minmax(0, 1fr); gap: 48px; align-items: start; margin-top: 16px; }
  .rv-show { position: sticky; top: 8px; }
  .rv-picture-of { height: clamp(380px, 100vh - 330px, 560px); touch-action: pan-y; overflow: hidden; contain: layout paint; }
  .rv-picture-of > svg { display: block; }
  &[data-scene="3"] .rv-picture-of { height: clamp(300px, 100vh - 440px, 460px); }
  &[data-scene="7"] .rv-picture-of { height: clamp(390px, 100vh - 310px, 620px); }
  &[data-scene="8"] .rv-picture-of { height: auto; }
  .rv-first { display: none; margin-top: 12px; font-weight: 600; color: var(--query); }
  &[data-unanswered] { &:not([data-scene="8"]) .rv-first { display: block; } .rv-controls { opacity: 0.45; } :is(.rv-do, .rv-see, .rv-note, .rv-words-of, [data-do=video]) { display: none; } }
  .rv-caption { margin-top: 8px; font-size: 14px; line-height: 20px; color: var(--plain); }
  .rv-count { font-size: 15px; color: var(--plain); }
  h2 { font-size: 30px !important; line-height: 38px !important; font-weight: 700 !important; }
  .rv-lead { margin-top: 8px; font-size: 17px; line-height: 26px; }
  .rv-part { margin-top: 20px; padding-left: 20px; border: 0; border-left: 3px solid var(--face); border-radius: 0; }
  .rv-part.rv-finished { border-color: var(--kept); }
  .rv-part.rv-see { border-color: var(--query); }
  .rv-part summary { display: flex; gap: 8px; align-items: center; list-style: none; cursor: default; padding: 0; min-height: 24px; }
  .rv-part summary::-webkit-details-marker { display: none; }
  h3 { font-size: 16px !important; line-height: 24px !important; font-weight: 600 !important; }
  .rv-tick, .rv-short { display: none; }
  .rv-finished summary .rv-tick { display: block; color: var(--kept); }
  .rv-part:not([open]) .rv-short { display: inline; color: var(--plain); overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
  .rv-answers { display: flex; flex-wrap: wrap; gap: 8px; margin-top: 8px; }
  .rv-answers.rv-tall { flex-direction: column; align-items: stretch; }
  .rv-answers button { display: flex; gap: 8px; align-items: center; min-height: 40px; padding: 6px 14px; text-align: left; border: 1px solid var(--rule); border-radius: 8px; }
  .rv-answers button:hover { border-color: var(--query); }
  .rv-answers .rv-wrong { border: 2px solid var(--text); }
  .rv-answers .rv-right { border: 2px solid var(--kept); color: var(--kept); font-weight: 600; }
  .rv-answers .rv-right .rv-tick { display: block; flex: none; }
  .rv-why:not(:empty) { margin-top: 8px; }
  .rv-quiz { margin-top: 8px; }
  .rv-more { min-height: 40px; margin-top: 8px; padding: 0 14px; border: 1px solid var(--query); border-radius: 8px; }
  .rv-more:hover { background: color-mix(in srgb, var(--query) 10%, transparent); }
  .rv-note { margin-top: 20px; }
  .rv-written:not(:empty) { margin-top: 12px; font-size: 15px; line-height: 21px; dl { margin: 8px 0; } dt { font-weight: 600; } dd { margin: 0 0 8px; font-family: Georgia, "Noto Serif", serif; } }
  .rv-maths { margin-top: 20px; border: solid var(--face); border-width: 1px 0; border-radius: 0; }
  .rv-maths summary { padding: 10px 0; cursor: pointer; }
  .rv-maths > div { padding-bottom: 16px; font-size: 15px; overflow-x: auto; }
  .rv-maths p + p { margin-top: 8px; }
  .rv-maths .rv-formula { margin: 8px 0; display: flex; flex-wrap: wrap; gap: 6px; align-items: center; font-family: "STIX Two Math", "Cambria Math", Georgia, serif; font-size: 17px; line-height: 26px; }
  .rv-maths .rv-matrix { display: inline-grid; gap: 0 12px; padding: 0 8px; text-align: center; border: solid currentColor; border-width: 0 1.5px; border-radius: 10px; font-size: 15px; line-height: 22px; }
  .rv-extra { display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: center; margin-top: 12px; }
  .rv-extra :is(a, button) { display: inline-flex; align-items: center; min-height: 40px; padding: 0; border: 0; font-size: 15px; color: var(--query); text-decoration: underline; text-underline-offset: 3px; }
  .rv-code { font-size: 14px; }
  .rv-code code { display: block; margin: 4px 0; padding: 8px; white-space: pre-wrap; overflow-wrap: anywhere; color: inherit; background: var(--panel); }
  .rv-way { position: sticky; bottom: 0; display: flex; gap: 12px; align-items: center; margin-top: 8px; padding: 10px 0; background: var(--background); }
  .rv-way :is(button, a) { min-height: 44px; min-width: 48px; border: 1px solid var(--rule); border-radius: 8px; }
  .rv-way [disabled] { opacity: 0.45; cursor: default; }
  .rv-way .rv-next { display: inline-flex; align-items: center; justify-content: center; padding: 0 20px; font-weight: 600; color: var(--background); background: var(--query); border-color: var(--query); text-decoration: none; }
  .rv-controls { margin-top: 12px; }
  :is(.rv-track, .rv-ruler) { position: relative; height: 56px; touch-action: pan-y; user-select: none; cursor: pointer; }
  .rv-track + .rv-track { margin-top: 8px; }
  :is(.rv-track, .rv-ruler) svg { position: absolute; inset: 0; height: 52px; overflow: visible; pointer-events: none; }
  .rv-track .rv-thumb { position: absolute; top: 4px; left: 0; width: 0; height: 40px; cursor: grab; }
  .rv-track .rv-thumb i { position: absolute; left: 0; display: grid; place-items: center; height: 38px; min-width: 40px; padding: 0 12px; box-sizing: border-box; transform: translateX(-50%); font-style: normal; font-weight: 600; white-space: nowrap; color: var(--background); background: var(--colour); border-radius: 8px; }
  .rv-track .rv-thumb i:empty { top: 5px; min-width: 28px; width: 28px; height: 28px; padding: 0; border-radius: 50%; border: 3px solid var(--background); box-shadow: 0 0 0 1px var(--colour); }
  .rv-thumb:focus-visible { outline: none !important; }
  .rv-thumb:focus-visible i { outline: 2px solid var(--query); outline-offset: 2px; }
  &[data-scene="1"] .rv-track, &[data-scene="2"] .rv-track, &[data-scene="4"] .rv-track { height: 78px; svg { top: 22px; } }
  .rv-ruler { height: 36px; border-radius: 0 0 8px 8px; border-top: 2px solid var(--rule); background: color-mix(in srgb, var(--face) 55%, transparent); cursor: ew-resize; overflow: hidden; }
  .rv-ruler:hover, .rv-ruler[data-held] { background: var(--face); }
  .rv-ruler .rv-thumb { position: absolute; inset: 0; }
  .rv-ruler:has(.rv-thumb:focus-visible) { outline: 2px solid var(--query); outline-offset: 2px; }
  [data-held] .rv-thumb { cursor: grabbing; }
  &[data-scene="3"] .rv-track:first-child { height: 46px; svg { display: none; } }
  .rv-choices { display: flex; flex-wrap: wrap; gap: 8px 24px; }
  .rv-choice { display: flex; }
  .rv-choice button { min-height: 40px; min-width: 44px; padding: 0 12px; border: 1px solid var(--rule); }
  .rv-choice button + button { border-left: 0; }
  .rv-choice button:first-child { border-radius: 8px 0 0 8px; }
  .rv-choice button:last-child { border-radius: 0 8px 8px 0; }
  .rv-choice [aria-pressed=true] { color: var(--query); font-weight: 600; background: color-mix(in srgb, var(--query) 10%, transparent); }
  .rv-proof { width: 100%; border-collapse: collapse; font-size: 17px; }
  .rv-proof caption { text-align: left; padding-bottom: 12px; font-size: 15px; color: var(--plain); caption-side: top; }
  .rv-proof :is(td, th) { padding: 14px 8px; text-align: right; font-weight: 400; border: 0; border-bottom: 1px solid var(--face); }
  .rv-proof th:first-child { text-align: left; font-weight: 600; }
  .rv-proof td span { font-weight: 400; }
${SENTENCE_STYLE}
  @media (max-width: 1100px) { .rv-eight { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
  @media (max-width: 1100px) { .rv-steps span { font-size: 0; } .rv-stage { gap: 32px; } }
  @media (max-width: 760px) {
    .rv-steps button { min-height: 40px; }
    .rv-steps .rv-over::after { right: calc(50% - 6px); }
    .rv-eight { grid-template-columns: minmax(0, 1fr); gap: 12px; }
    .rv-sheet { padding-bottom: 72px; }
    .rv-stage { grid-template-columns: minmax(0, 1fr); gap: 12px; margin-top: 0; padding-bottom: 72px; }
    .rv-show { z-index: 2; top: 0; padding-bottom: 8px; background: var(--background); border-bottom: 1px solid var(--face); }
    .rv-picture-of, &[data-scene] .rv-picture-of { height: 250px; }
    &[data-scene="3"] .rv-picture-of { height: 210px; }
    &[data-scene="7"] .rv-picture-of { height: 330px; }
    &[data-scene="7"][data-unanswered] .rv-picture-of { height: 200px; }
    &[data-scene="8"] .rv-picture-of { height: auto; min-height: 200px; }
    &[data-scene="8"] .rv-show { position: static; }
    .rv-controls { margin-top: 4px; }
    .rv-first { margin-top: 4px; }
    &[data-unanswered] .rv-controls { display: none; }
    .rv-caption { display: none; }
    .rv-proof { font-size: 15px; }
    .rv-proof :is(td, th) { padding: 8px 2px; }
    .rv-choice button { padding: 0 9px; font-size: 15px; }
    h2 { font-size: 25px !important; line-height: 31px !important; }
    .rv-part { margin-top: 6px; summary { min-height: 40px; } }
    .rv-way { position: fixed; z-index: 3; left: 0; right: 0; bottom: 0; margin: 0; padding: 12px 16px; background: var(--background); border-top: 1px solid var(--face); }
    .rv-way .rv-next { flex: 1; }
  }
}
`;
