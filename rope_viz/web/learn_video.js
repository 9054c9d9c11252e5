// A video of a scene of Learn: its slider moves there and back while the picture is painted on a canvas.

import { VIDEO, recordPicture } from "./video.js";

export const canRecord = VIDEO !== undefined;

const W = 800, H = 460, ROWS = 4; // pixels of the picture, and rows of its sentence

// Paint one shape of a scene's SVG. Scenes are made of lines, circles, rectangles, paths and texts.
export function paintShape(x, node, { resolveColour, font }) {
  const readAttribute = (name, other) => node.getAttribute(name) ?? other, readNumber = (name, other = 0) => Number(readAttribute(name, other));
  const [fill, stroke] = [resolveColour(readAttribute("fill", "black")), resolveColour(readAttribute("stroke", "none"))], opacity = readNumber("opacity", 1);
  Object.assign(x, { globalAlpha: opacity, lineWidth: readNumber("stroke-width", 1), lineCap: readAttribute("stroke-linecap", "butt"), lineJoin: "round" });
  x.setLineDash(readAttribute("stroke-dasharray", "").split(/[ ,]+/).filter(Boolean).map(Number));
  if (node.localName === "text") {
    const at = [node.textContent, readNumber("x"), readNumber("y")];
    const align = { start: "left", middle: "center", end: "right" }[readAttribute("text-anchor", "start")];
    Object.assign(x, { font: `${readAttribute("font-weight", 400)} ${readAttribute("font-size")}px ${font}`, textAlign: align, lineWidth: 4, strokeStyle: resolveColour("var(--background)"), fillStyle: fill });
    x.strokeText(...at);
    x.fillText(...at);
    return;
  }
  const path = new Path2D(readAttribute("d", ""));
  if (node.localName === "circle") path.arc(readNumber("cx"), readNumber("cy"), readNumber("r"), 0, 2 * Math.PI);
  else if (node.localName === "rect") path.rect(readNumber("x"), readNumber("y"), readNumber("width"), readNumber("height"));
  else if (node.localName === "line") {
    path.moveTo(readNumber("x1"), readNumber("y1"));
    path.lineTo(readNumber("x2"), readNumber("y2"));
  }
  if (fill !== "none" && node.localName !== "line") {
    Object.assign(x, { fillStyle: fill, globalAlpha: opacity * readNumber("fill-opacity", 1) });
    x.fill(path);
  }
  if (stroke === "none") return;
  Object.assign(x, { strokeStyle: stroke, globalAlpha: opacity });
  x.stroke(path);
}

// The colours and the font of Learn, for a canvas.
export function makeLook(root) {
  const style = getComputedStyle(root);
  return { resolveColour: (value) => (value.startsWith("var(") ? style.getPropertyValue(value.slice(4, -1)).trim() : value), font: style.fontFamily };
}

// Record the scene that is shown. Its slider moves by itself until the user moves something, and at the end returns to where
// it was. `draw` returns the SVG for a width and a height, `sentence` the current one. Return a function that stops it.
export function recordScene(s, { scene, state, words, numbers }, { draw, sentence, onMove, onEnd }) {
  const look = makeLook(s.root), { resolveColour, font } = look, before = { ...state.v }, svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  s.userMoved = false;
  return recordPicture({
    w: W, h: H, title: words.title, rows: ROWS, font, name: `rope-scene-${s.at}`,
    colours: { text: resolveColour("var(--text)"), background: resolveColour("var(--background)") },
    paint(x, share) {
      if (!s.userMoved) {
        Object.assign(state.v, scene.playAt(share, state.v, numbers));
        onMove();
      }
      svg.innerHTML = draw(W, H);
      for (const node of svg.children) paintShape(x, node, look);
      return sentence();
    },
    onEnd() {
      if (!s.userMoved) Object.assign(state.v, before);
      onEnd();
    },
  });
}
