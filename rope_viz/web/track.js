// The track of a slider: values by their place on it, and values as users type and read them.

// A value's share of its track, which is linear in the value or in its logarithm.
export const toTrack = ({ low, high, log }, value) => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));

function fromTrack({ low, high, log, step, integer }, share) {
  const raw = log ? low * (high / low) ** share : low + share * (high - low);
  const snapped = step ? low + Math.round((raw - low) / step) * step : log ? roundValue(raw, integer) : raw;
  return Math.min(high, Math.max(low, integer ? Math.round(snapped) : snapped));
}

// Round values on a log track: powers of two and their quarters for lengths, 3 digits otherwise.
function roundValue(value, integer) {
  if (!integer) return Number(value.toPrecision(3));
  const unit = 2 ** Math.max(0, Math.floor(Math.log2(value)) - 3);
  return Math.round(value / unit) * unit;
}

export function formatValue(value, unit) {
  if (unit === "tokens" && value >= 1024 && value % 1024 === 0) {
    return value % 1048576 === 0 ? `${value / 1048576}M` : `${value / 1024}k`;
  }
  const digits = Number(value.toPrecision(6));
  return value >= 1e6 && !unit ? digits.toExponential().replace("e+", "e") : String(digits);
}

// Accept numbers such as "128k", "4M", "1e6" and "500_000". k is 1,024 for a length, 1,000 for all else.
export function parseValue(typed, unit) {
  const match = /^\s*([0-9][0-9_, ]*\.?[0-9]*(?:e[+-]?[0-9]+)?)\s*([km]?)\s*$/i.exec(typed);
  if (!match) return NaN;
  return Number(match[1].replace(/[_, ]/g, "")) * (unit === "tokens" ? 1024 : 1000) ** { "": 0, k: 1, m: 2 }[match[2].toLowerCase()];
}

// Count the equal steps of a track.
export const countSteps = ({ low, high, log, step, integer }) => (log ? 1000 : Math.round(step ? (high - low) / step : integer ? high - low : 500));

// Read the value under the thumb. Round values are further apart than the track's steps, so a key press moves on to the next
// one; otherwise the thumb would snap back every time.
export function readThumb({ data, range, value }, isByKey) {
  const from = Math.round(toTrack(data, value) * range.max), way = Math.sign(range.value - from);
  let at = Number(range.value), found = fromTrack(data, at / range.max);
  while (isByKey && way && found === value && at > 0 && at < range.max) found = fromTrack(data, (at += way) / range.max);
  return found;
}
