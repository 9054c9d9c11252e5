// The size of a presented picture: present.js sets its height and the scale of its type.

import { computePlotHeight, moveBands } from "./chart_view.js";

// `height` is in pixels before scaling, 0 while no picture is presented.
export const room = { scale: 1, height: 0 };

// Give a picture's message the height of the room instead of its own.
export function fitToRoom(message) {
  const { scale, height } = room;
  if (!height) return message;
  if (!message.figure) return { ...message, scale, heights: message.heights && [height, height] };
  const { layout } = message.figure, tall = { ...layout, height };
  const narrow = layout.meta?.narrow && { ...layout.meta.narrow, height };
  const shapes = moveBands(layout.shapes, computePlotHeight(layout) / computePlotHeight(tall));
  return { ...message, figure: { ...message.figure, layout: { ...tall, shapes, meta: { ...layout.meta, narrow } } } };
}
