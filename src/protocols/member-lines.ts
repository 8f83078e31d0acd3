/** The registry's lines of what a member has beside its services: which names there are, and what becomes of messages that nobody can take. */
import type { NodeId, Tagged } from "../core/protocol.ts";
import { entry } from "./entry.ts";
import { names as namesFamily, pressure } from "./family.ts";
import { wholeMembers } from "./member/whole/whole-members.ts";
import { backPressure } from "./membership/back-pressure/back-pressure.ts";
import { overFullLinks } from "./membership/back-pressure/full-links.ts";
import { watching } from "./membership/family/watching.ts";
import { heartbeat } from "./membership/heartbeat.ts";
import { names } from "./membership/names/names.ts";
import { settled } from "./system.ts";

export const onRealProcesses = {
  summary: "with the failure detector that real processes have",
  detects: true,
} as const;

const toldInNames = (node: NodeId): Tagged => ({ type: "names", body: { type: "suspect", node } }) as Tagged;

export const backPressureLine = entry(
  pressure,
  "senders wait for members whose readers cannot keep up, as they say again and again",
  backPressure,
  {
    variants: {
      "full-links": {
        summary: "sending again what links refuse, which they may do at any time",
        model: overFullLinks,
      },
    },
    mustStart: true,
    embedded: false,
    check: {
      maxTimeouts: 6,
      crashNotification: (node) => ({ type: "workload", body: { type: "suspect", node } }) as Tagged,
    },
    shown: { labels: { pressure: ["isFull"], item: ["item"] } },
  },
);

export const namesLine = entry(
  namesFamily,
  "which elections, locks and channels there are, with which settings; what nobody uses is put away by all",
  { parts: { names, detector: heartbeat }, wires: watching("names"), algorithm: "names" },
  {
    variants: {
      bounded: {
        summary: "idle after one sweep, asked again after two: fewer states, for the checker",
        algorithm: settled(names, { idleSweeps: 1, askSweeps: 2, graceSweeps: 1 }),
      },
      monitored: onRealProcesses,
      ...wholeMembers,
    },
    mustStart: true,
    embedded: false,
    check: { variant: "bounded", counters: ["round"], maxTimeouts: 4, crashNotification: toldInNames },
    shown: { labels: { open: ["setting"], refuse: ["setting"] }, periodic: ["beat"] },
  },
);
