// How large a picture is drawn while it is presented: present.js sets the scale of its type and its height.

import { moveBands, plotHeight } from "./chart_view.js";

// `height` is in pixels before scaling, 0 while no picture is presented.
export const room = { scale: 1, height: 0 };

// A picture's message with the height of the room instead of its own.
export function fit(message) {
  const { scale, height } = room;
  if (!height) return message;
  if (!message.figure) return { ...message, scale, heights: message.heights && [height, height] };
  const { layout } = message.figure, tall = { ...layout, height };
  const narrow = layout.meta?.narrow && { ...layout.meta.narrow, height };
  const shapes = moveBands(layout.shapes, plotHeight(layout) / plotHeight(tall));
  return { ...message, figure: { ...message.figure, layout: { ...tall, shapes, meta: { ...layout.meta, narrow } } } };
}
