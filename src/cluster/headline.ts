/** The sentence of the live page, for protocols whose pictures alone tell how things stand. */
import { protocolNamed, protocolNames } from "../protocols/index.ts";
import type { NodePicture } from "./feed.ts";

/** Null where it takes more than the latest pictures: what was delivered or decided, and links that are cut. */
export function headlineOf(protocol: string, nodes: readonly NodePicture[]): string | null {
  if (!protocolNames.includes(protocol)) return null;
  const { family, presentation } = protocolNamed(protocol);
  if (family.name !== "mutual exclusion") return null;
  const shown = nodes.map(({ id: node, process, view }) => ({ node, view, condition: conditions[process] }));
  return presentation.headline({ nodes: shown, events: [] });
}

const conditions = { starting: "down", exited: "down", paused: "paused", running: "up" } as const;
