/** What the live page gets of a protocol's presentation: which states it draws, and a sentence where pictures alone tell how things stand. */
import { protocolNamed, protocolNames, type Spans } from "../protocols/index.ts";
import type { NodePicture } from "./feed.ts";

/** Null where it takes more than the latest pictures: what was delivered or decided, and links that are cut. */
export function headlineOf(protocol: string, nodes: readonly NodePicture[]): string | null {
  if (!protocolNames.includes(protocol)) return null;
  const { family, presentation } = protocolNamed(protocol);
  if (family.name !== "mutual exclusion") return null;
  const shown = nodes.map(({ id: node, process, view }) => ({ node, view, condition: conditions[process] }));
  return presentation.headline({ nodes: shown, events: [] });
}

/** What is not in the registry may hold a section as the protocols do that are. */
export function spansOf(protocol: string): Spans {
  if (!protocolNames.includes(protocol)) return { spans: "section", term: "epoch" };
  const { spans, term } = protocolNamed(protocol).presentation;
  return { spans, term };
}

const conditions = { starting: "down", exited: "down", paused: "paused", running: "up" } as const;
