import { it } from "vitest";
import { explore } from "../../experiment/explore.ts";
it("x", { timeout: 1200000 }, () => {
  for (const [protocol, more] of [
    ["view-synchrony", { nodes: 2, maxTimeouts: 2 }],
    ["view-synchrony", { nodes: 2, maxTimeouts: 1, crashes: 1, recoveries: 1 }],
    ["isis", { nodes: 2, maxTimeouts: 2 }],
    ["view-synchrony", { nodes: 3, send: [0], begin: "together", maxTimeouts: 1, maxInFlight: 6 }],
  ] as const) {
    const t = Date.now();
    const a = explore({ protocol, variant: "channel-bounded", ...more } as never);
    console.log(protocol, JSON.stringify(more), a.verdict, a.property, a.ended, a.states, Date.now() - t, JSON.stringify(a.reach.events));
  }
});
