// Fill the named placeholders of a text from rope_viz/texts, as in fill("Add {kind}", { kind: "video" }).
export const fill = (text, values = {}) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
