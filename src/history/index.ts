/** Histories: linearizability checks with evidence and pictures, virtual synchrony, and log readers. */
export * from "./check.ts";
export * from "./history.ts";
export {
  counter,
  lock,
  type Model,
  type ModelCall,
  map,
  modelNamed,
  modelNames,
  queue,
  register,
  show,
} from "./model.ts";
export { drawText, type PictureOptions } from "./picture.ts";
export { type ReadingOptions, readHistory, readJepsenHistory, readJsonLinesHistory } from "./readers.ts";
export {
  type GroupEntry,
  type GroupOrders,
  type GroupRecord,
  type GroupViolation,
  virtualSynchrony,
} from "./virtual-synchrony.ts";
