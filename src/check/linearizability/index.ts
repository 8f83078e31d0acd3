/** Linearizability: histories and how to read them, models, the verdict with its evidence, and pictures of it. */
export * from "./check.ts";
export * from "./history.ts";
export { type Model, type ModelCall, show } from "./model.ts";
export * from "./models/index.ts";
export { drawSvg, type PictureOptions } from "./picture/svg.ts";
export { drawText } from "./picture/text.ts";
export type { ReadingOptions } from "./readers/events.ts";
export { readJepsenHistory } from "./readers/jepsen.ts";
export { readJsonLinesHistory } from "./readers/json-lines.ts";
export { readHistory } from "./readers/read.ts";
