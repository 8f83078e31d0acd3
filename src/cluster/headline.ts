/**
 * The parts of a protocol's presentation that the live page uses: the states that it draws as spans, and a summary of
 * the current state.
 */
import type { NodeId, Tagged } from "../core/protocol.ts";
import { unwrapped } from "../core/wrapping.ts";
import { type Family, isRegistered, protocolNamed, type Scene, type Spans } from "../protocols/index.ts";
import { ledView, rowsOf } from "../protocols/presentation.ts";
import type { NodePicture, Presented } from "./feed.ts";

/** Families whose summary depends on events (deliveries, decisions, suspicions), which views do not contain. */
const TOLD_BY_EVENTS: ReadonlySet<string> = new Set(["multicast", "consensus", "commit", "membership"]);

/**
 * @param events all events so far, or null if unknown
 * @returns null if the summary needs events that are unknown, or if the protocol is not in the registry
 */
export function headlineOf(
  protocol: string,
  nodes: readonly NodePicture[],
  events: Scene["events"] | null,
): string | null {
  if (!isRegistered(protocol)) return null;
  const { family, presentation } = protocolNamed(protocol);
  if (events === null && TOLD_BY_EVENTS.has(family.part)) return null;
  const shown = nodes.map(({ id: node, process, view }) => {
    return { node, view: view && ledView(view), condition: conditions[process] };
  });
  return presentation.headline({ nodes: shown, events: events ?? [] });
}

/** Returns the states to draw as spans. A protocol that is not in the registry may have critical sections too. */
export function spansOf(protocol: string): Spans {
  if (!isRegistered(protocol)) return { spans: "section", term: "epoch" };
  const { spans, term } = protocolNamed(protocol).presentation;
  return { spans, term };
}

const works: Readonly<Record<Family["name"], Presented["work"]>> = {
  election: "election",
  "mutual exclusion": "entry",
  multicast: "multicast",
  consensus: "decision",
  membership: null,
  "a custom problem": null,
};

/**
 * Returns the parts that never change, which are sent only once. Undefined for protocols that are not in the registry.
 */
export function presentedOf(
  protocol: string,
  nodes: readonly NodeId[],
  options: unknown,
): { readonly presented?: Presented } {
  if (!isRegistered(protocol)) return {};
  const { presentation, family, model } = protocolNamed(protocol);
  const published = nodes.length === 1 ? [] : model().costs;
  const costs = published.map(({ when, messages }) => ({ when, count: messages(nodes.length) }));
  return {
    presented: {
      topology: presentation.topology,
      rows: rowsOf(presentation, nodes, options),
      carriers: presentation.carriers,
      work: works[family.name],
      costs: costs.filter(({ count }) => count >= 0),
    },
  };
}

const conditions = { starting: "down", exited: "down", paused: "paused", running: "up" } as const;

/**
 * The events emitted by all nodes, stored compactly. If a node emits several events with the same type and subject,
 * only the last one is retained, with a count.
 */
export class ToldEvents {
  readonly #last = new Map<string, Scene["events"][number]>();

  get all(): Scene["events"] {
    return [...this.#last.values()];
  }

  add(node: NodeId, event: Tagged): void {
    const { type, node: about } = unwrapped(event);
    const key = JSON.stringify([node, type, typeof about === "number" ? about : null]);
    const times = (this.#last.get(key)?.times ?? 0) + 1;
    this.#last.delete(key); // Move it to the end, to keep entries in order of their last occurrence.
    this.#last.set(key, { node, event, times });
  }
}
