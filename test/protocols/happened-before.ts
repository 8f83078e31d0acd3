/** Checks that a group in the simulator delivers unique payloads in happened-before order. */
import type { NodeId } from "../../src/core/protocol.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";

export interface HappenedBefore {
  /** Records the entries of a run, one after another. */
  note(entry: TraceEntry): void;
  /** Deliveries of a message after one that depends on it, at the same node. */
  readonly violations: readonly string[];
}

/**
 * One incarnation of a node. `due` contains payloads that must precede a delivered payload and have not been delivered
 * yet.
 */
interface Life {
  readonly known: Set<string>;
  readonly delivered: Set<string>;
  readonly due: Map<string, string>;
}

export function happenedBefore(): HappenedBefore {
  const lives = new Map<NodeId, Life>();
  const pasts = new Map<string, readonly string[]>();
  const violations: string[] = [];

  function deliver(node: NodeId, life: Life, payload: string): void {
    const later = life.due.get(payload);
    if (later !== undefined) violations.push(`node ${node} delivered ${later} before ${payload}`);
    life.known.add(payload);
    life.delivered.add(payload);
    for (const earlier of pasts.get(payload) ?? []) if (!life.delivered.has(earlier)) life.due.set(earlier, payload);
  }

  return {
    violations,
    note(entry) {
      const { node } = entry;
      if (entry.kind === "start") lives.set(node, { known: new Set(), delivered: new Set(), due: new Map() });
      const life = lives.get(node);
      if (life === undefined) return;
      if (entry.kind === "command" && isAbout(entry.command, "send")) {
        const { payload } = entry.command.body;
        pasts.set(payload, [...life.known]);
        life.known.add(payload);
      } else if (entry.kind === "event" && isAbout(entry.event, "delivered"))
        deliver(node, life, entry.event.body.payload);
    },
  };
}

function isAbout(said: { type: string }, type: string): said is { type: string; body: { payload: string } } {
  return said.type === "multicast" && (said as { body?: { type?: string } }).body?.type === type;
}
