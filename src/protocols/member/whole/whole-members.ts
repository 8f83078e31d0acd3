/** The whole members that are explored: as many names, settings and locks as their runs allow. */
import type { NodeId, Tagged } from "../../../core/protocol.ts";
import type { Embedded } from "../../entry.ts";
import { mutualExclusions } from "../../mutexes.ts";
import { member } from "./member.ts";

const embedded = (algorithm: string): Embedded => mutualExclusions[algorithm]?.embedded as Embedded;
const toldInDetector = (node: NodeId): Tagged => ({ type: "detector", body: { type: "suspect", node } }) as Tagged;
const bounded = { idleSweeps: 1, askSweeps: 2, graceSweeps: 1 };

export const wholeMembers = {
  lock: {
    summary: "a whole member: names, and under one a lock of Ricart and Agrawala's, which is there for good",
    model: member({ lock: embedded("ricart-agrawala"), settings: { rejoins: true }, names: bounded }),
    crashNotification: toldInDetector,
    ends: true,
  },
  "ring-lock": {
    summary: "a whole member with an epoch-token-ring, which is put away by all; its leases do not run out",
    model: member({ lock: embedded("epoch-token-ring"), names: bounded, isTimed: false }),
    counters: ["round"],
    crashNotification: toldInDetector,
  },
  "ring-lock-timed": {
    summary: "the same with leases that may run out at any time: two may be inside, and never with one token",
    model: member({ lock: embedded("epoch-token-ring"), names: bounded }),
    counters: ["round"],
    crashNotification: toldInDetector,
  },
  "served-lock": {
    summary: "a whole member with an elected-server, which each puts away alone; its leases do not run out",
    model: member({ lock: embedded("elected-server"), names: bounded, isTimed: false }),
    crashNotification: toldInDetector,
    ends: true,
  },
  "served-lock-timed": {
    summary: "the same with leases that may run out at any time: two may be inside, and never with one token",
    model: member({ lock: embedded("elected-server"), names: bounded }),
    crashNotification: toldInDetector,
  },
} as const;
