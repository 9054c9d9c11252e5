// A video of a scene of Learn: its slider moves there and back while the picture is painted on a canvas.

import { VIDEO, recordPicture } from "./video.js";

export const canRecord = VIDEO !== undefined;

const W = 800, H = 460, ROWS = 4; // pixels of the picture, and rows of its sentence

// Paint one shape of a scene's SVG. Scenes are made of lines, circles, rectangles, paths and texts.
function paintShape(x, node, { colour, font }) {
  const get = (name, other) => node.getAttribute(name) ?? other, number = (name, other = 0) => Number(get(name, other));
  const [fill, stroke] = [colour(get("fill", "black")), colour(get("stroke", "none"))], opacity = number("opacity", 1);
  Object.assign(x, { globalAlpha: opacity, lineWidth: number("stroke-width", 1), lineCap: get("stroke-linecap", "butt"), lineJoin: "round" });
  x.setLineDash(get("stroke-dasharray", "").split(/[ ,]+/).filter(Boolean).map(Number));
  if (node.localName === "text") {
    const at = [node.textContent, number("x"), number("y")];
    const align = { start: "left", middle: "center", end: "right" }[get("text-anchor", "start")];
    Object.assign(x, { font: `${get("font-weight", 400)} ${get("font-size")}px ${font}`, textAlign: align, lineWidth: 4, strokeStyle: colour("var(--background)"), fillStyle: fill });
    x.strokeText(...at);
    x.fillText(...at);
    return;
  }
  const path = new Path2D(get("d", ""));
  if (node.localName === "circle") path.arc(number("cx"), number("cy"), number("r"), 0, 2 * Math.PI);
  else if (node.localName === "rect") path.rect(number("x"), number("y"), number("width"), number("height"));
  else if (node.localName === "line") {
    path.moveTo(number("x1"), number("y1"));
    path.lineTo(number("x2"), number("y2"));
  }
  if (fill !== "none" && node.localName !== "line") {
    Object.assign(x, { fillStyle: fill, globalAlpha: opacity * number("fill-opacity", 1) });
    x.fill(path);
  }
  if (stroke === "none") return;
  Object.assign(x, { strokeStyle: stroke, globalAlpha: opacity });
  x.stroke(path);
}

// Record the scene that is shown. Until the user moves something, its slider moves by itself; at the end it is where it was.
// `draw` returns the SVG of a width and a height, `sentence` that of now. Returns a function that stops the recording.
export function recordScene(s, { scene, state, words, numbers }, { draw, sentence, moved, ended }) {
  const { root } = s, style = getComputedStyle(root), svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const colour = (value) => (value.startsWith("var(") ? style.getPropertyValue(value.slice(4, -1)).trim() : value);
  const look = { colour, font: style.fontFamily }, before = { ...state.v };
  s.taken = false;
  return recordPicture({
    w: W, h: H, title: words.title, rows: ROWS, font: style.fontFamily, name: `rope-scene-${s.at}`,
    colours: { text: colour("var(--text)"), background: colour("var(--background)") },
    paint(x, share) {
      if (!s.taken) {
        Object.assign(state.v, scene.plays(share, state.v, numbers));
        moved();
      }
      svg.innerHTML = draw(W, H);
      for (const node of svg.children) paintShape(x, node, look);
      return sentence();
    },
    ended() {
      if (!s.taken) Object.assign(state.v, before);
      ended();
    },
  });
}
