/** Finds the last change of leader and, if the leader's process stopped, how long the cluster had no leader. */
import type { NodeId } from "../../../src/core/protocol.ts";
import type { Life } from "../history/life.ts";

export interface Takeover {
  readonly from: NodeId;
  readonly to: NodeId;
  /** The fate of the previous leader. `running` if it was not stopped. */
  readonly fate: "gone" | "paused" | "running";
  readonly tookMs: number;
}

/** Returns the last takeover, or null if no change of leader is remembered. */
export function lastTakeover(lives: ReadonlyMap<NodeId, Life>): Takeover | null {
  const all = [...lives.values()].map((life) => ({ node: life.node, stretches: life.stretches() }));
  const losses = all.flatMap(({ node, stretches }) =>
    stretches.flatMap(({ from, condition }, index) => {
      const before = stretches[index - 1];
      return condition !== "running" && before?.condition === "running" && before.leads
        ? [{ node, at: from, fate: condition }]
        : [];
    }),
  );
  const gains = all
    .flatMap(({ node, stretches }) =>
      stretches
        .filter(({ leads, condition }) => leads && condition === "running")
        .map(({ from }) => ({ node, at: from })),
    )
    .toSorted((a, b) => a.at - b.at);
  const takeovers = losses.flatMap((loss): (Takeover & { at: number })[] => {
    const gain = gains.find(({ node, at }) => node !== loss.node && at > loss.at);
    if (gain === undefined) return [];
    return [{ from: loss.node, to: gain.node, fate: loss.fate, tookMs: gain.at - loss.at, at: loss.at }];
  });
  const takeover = takeovers.sort((a, b) => a.at - b.at).at(-1) ?? null;
  const place = gains.findLastIndex(({ node }, index) => index > 0 && gains[index - 1]?.node !== node);
  const [before, change] = [gains[place - 1], gains[place]];
  if (before === undefined || change === undefined) return takeover;
  if (takeover !== null && change.at <= takeover.at + takeover.tookMs) return takeover;
  return { from: before.node, to: change.node, fate: "running", tookMs: 0 };
}

export function takeoverInWords({ from, to, fate, tookMs }: Takeover): string {
  if (fate === "running") return `Last change of leader: from node ${from} to node ${to}.`;
  const fall = fate === "gone" ? "died" : "was paused";
  const duration = tookMs < 10_000 ? `${Math.round(tookMs)} ms` : `${(tookMs / 1_000).toFixed(1)} s`;
  return `Last takeover: node ${to}, ${duration} after node ${from} ${fall}.`;
}
