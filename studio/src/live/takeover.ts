/** How long the cluster was without a leader the last time it lost one. */
import type { NodeId } from "../../../src/core/protocol.ts";
import type { Life } from "../history/life.ts";

export interface Takeover {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly fate: "gone" | "paused";
  readonly tookMs: number;
}

/** The last time that a leader's process fell silent and another node led afterwards; null if that is not remembered. */
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
  const gains = all.flatMap(({ node, stretches }) =>
    stretches
      .filter(({ leads, condition }) => leads && condition === "running")
      .map(({ from }) => ({ node, at: from })),
  );
  const takeovers = losses.flatMap((loss): (Takeover & { at: number })[] => {
    const later = gains.filter(({ node, at }) => node !== loss.node && at > loss.at);
    if (later.length === 0) return [];
    const gain = later.reduce((first, each) => (each.at < first.at ? each : first));
    return [{ from: loss.node, to: gain.node, fate: loss.fate, tookMs: gain.at - loss.at, at: loss.at }];
  });
  return takeovers.sort((a, b) => a.at - b.at).at(-1) ?? null;
}

export function takeoverInWords({ from, to, fate, tookMs }: Takeover): string {
  const fall = fate === "gone" ? "died" : "was paused";
  const duration = tookMs < 10_000 ? `${Math.round(tookMs)} ms` : `${(tookMs / 1_000).toFixed(1)} s`;
  return `Last takeover: node ${to}, ${duration} after node ${from} ${fall}.`;
}
