// Clocks and hands of an embedding without scaling, computed in the browser: as rope_viz/figures/clocks.py and hands.py pack them.

import { DEGREES, foldAngle, withMinus } from "./circle.js";
import { fill } from "./dials.js";

export const isUnscaled = ({ scaling }) => scaling.name === "none";

const listRates = ({ base, rotary_dim: dims }) => Array.from({ length: Math.ceil(dims / 2) }, (_, i) => base ** ((-2 * i) / dims));

// Return a message of clocks or hands with the frequencies and the lengths of `spec`. `titles` are texts, of the clocks by mode,
// `degrees` are those that four pairs turn per position.
export function applySpec(message, spec, { titles, degrees }) {
  const rates = listRates(spec), { context, target } = spec;
  if (message.kind === "clocks") {
    return { ...message, title: fill(titles[message.mode], { pairs: rates.length }), first: rates, scaled: null, plain: false, bands: rates.map(() => 0), context, target };
  }
  const findNearest = (angle) => rates.reduce((best, rate, i) => (Math.abs(Math.log((rate * DEGREES) / angle)) < Math.abs(Math.log((rates[best] * DEGREES) / angle)) ? i : best), 0);
  const few = degrees.map(findNearest), [, pair] = few, { model, start, slots } = message;
  const between = (start.query - start.key) * rates[pair], angle = foldAngle(between * DEGREES).toFixed(1), score = withMinus(Math.cos(between).toFixed(2));
  return { ...message, title: fill(titles.hands, { pair, model, angle, score }), inv_freq: rates, pair, few: [...new Set(few)].sort((a, b) => a - b), last: Math.max(context, slots[0]) - slots[0] };
}
