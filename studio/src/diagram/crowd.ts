/**
 * More messages than can be told apart: of those that would lie on each other one is drawn, the denser the fainter, so that
 * a hundred thousand are as quick to draw as a few hundred.
 */
import type { NodeId } from "../../../src/core/protocol.ts";
import { type Frame, xOf } from "./frame.ts";
import { type Crowd, type Message, momentOf } from "./picture.ts";

const FINEST_PX = 2;

/** @param most of the samples @param count of all, of which these may be samples already */
export function crowdOf(messages: readonly Message[], frame: Frame, most: number, count: number): Crowd {
  const rows = new Map<NodeId, number>(frame.nodes.map((node, row) => [node, row]));
  let samples: number[] = messages.map((_, index) => index);
  for (let width = FINEST_PX; samples.length > most; width *= 2) {
    const buckets = Math.ceil(frame.width / width) + 2;
    const isTaken = new Uint8Array(buckets * rows.size * rows.size);
    samples = samples.filter((index) => {
      const message = messages[index] as Message;
      const [from, to] = [rows.get(message.from) ?? -1, rows.get(message.to) ?? -1];
      if (from === -1 || to === -1) return false;
      const bucket = Math.min(buckets - 1, Math.max(0, Math.floor(xOf(momentOf(message), frame) / width) + 1));
      const cell = (bucket * rows.size + from) * rows.size + to;
      if (isTaken[cell] === 1) return false;
      isTaken[cell] = 1;
      return true;
    });
    if (width > frame.width) break;
  }
  return { count, samples };
}
