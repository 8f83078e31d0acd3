/** What a world is told when it is made, and what programs and runs in it are given. */
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import * as may from "../cluster/services/known-options.ts";
import type { NodeId } from "../core/protocol.ts";
import { type FaultKind, type FaultOptions, faultKinds } from "./faults.ts";
import type { Release } from "./release.ts";
import type { DiskModel } from "./simulated-disk.ts";
import type { LinkModel } from "./simulated-network.ts";
import type { WorldTimers } from "./world-timers.ts";

export interface WorldOptions {
  /** How many there are, with the ids from 1 on; or their ids. */
  readonly members: number | readonly NodeId[];
  /** Default: that of `COTERIE_SEED`, or 1. */
  readonly seed?: number | undefined;
  /** What the process of each member does once it has joined, and anew after each restart. */
  readonly program?: Program | undefined;
  /** `random`: machines fail, processes stand still, links are cut, slow or lossy, as the seed wishes. Default: nothing happens by itself. */
  readonly faults?: "random" | FaultOptions | undefined;
  /** Of all links. */
  readonly network?: LinkModel | undefined;
  readonly disk?: DiskModel | undefined;
  /** How fast the clocks of a machine go: 1.02 is 2 % too fast. Default: 1, or with `faults` up to 4 % wrong. */
  readonly drift?: Readonly<Record<NodeId, number>> | undefined;
  /** Options for the `join()` of all members. */
  readonly join?:
    | Partial<Omit<JoinOptions, "id" | "members" | "tls" | "signal" | "registry" | "admin" | "multicast">>
    | undefined;
  /** Of which release each member is as it starts, for tests of upgrades. Default: all are of this one. @internal */
  readonly release?: ((id: NodeId) => Release) | undefined;
}

/** What a member's process runs. It ends where its process ends: nothing that it waits for comes any more. */
export type Program = (member: Member, process: ProcessTools) => unknown;

/** What its code takes from its surroundings. */
export interface ProcessTools extends WorldTimers {
  /** The machine's clock: as `performance.now()`. */
  readonly now: () => number;
  /** As `Math.random()`. */
  readonly random: () => number;
  /** Writes into the world's log. */
  readonly log: (text: string) => void;
}

export interface RunOptions {
  /** How much virtual time it may take. Default: 10 minutes. */
  readonly limitMs?: number;
}

const count: may.Rule = {
  wanted: "a finite number of 0 or more",
  accepts: (value) => may.finite.accepts(value) && (value as number) >= 0,
};
/** What stands in them, and who the members are, is looked at where it is used. */
const known: may.Rules<WorldOptions> = {
  members: may.anything,
  seed: { wanted: "a whole number", accepts: (value) => Number.isSafeInteger(value) },
  program: may.callback,
  faults: {
    wanted: `"random" or an object with kinds or forMs`,
    accepts: (value) => value === "random" || may.isObject(value),
  },
  network: may.fields,
  disk: may.fields,
  drift: { wanted: "an object from id to a finite number > 0", accepts: areSpeeds },
  join: may.fields,
  release: may.callback,
};
const knownFaults: may.Rules<FaultOptions> = {
  kinds: { wanted: `a list of ${faultKinds.join(", ")}`, accepts: areFaultKinds },
  forMs: count,
};
const knownLink: may.Rules<LinkModel> = { delayMs: may.anything, loss: may.anything, bytesPerMs: may.anything };
const knownDisk: may.Rules<DiskModel> = { syncMs: may.anything };
const knownRun: may.Rules<RunOptions> = { limitMs: may.duration };
const runBody: may.Rule = {
  wanted: "a function, or a finite number of milliseconds of 0 or more",
  accepts: (value) => may.callback.accepts(value) || count.accepts(value),
};

/** @throws UsageError */
export function requireWorld(options: WorldOptions): void {
  may.requireOptions("simulate", options, known);
  const { faults, network, disk } = options;
  if (typeof faults === "object") may.requireOptions("simulate", faults, knownFaults, "faults");
  if (network !== undefined) may.requireOptions("simulate", network, knownLink, "network");
  if (disk !== undefined) may.requireOptions("simulate", disk, knownDisk, "disk");
}

/** @throws UsageError */
export function requireRun(body: unknown, options: RunOptions): void {
  may.requireRule("what run() is given", body, may.needed(runBody));
  may.requireOptions("run", options, knownRun);
}

/** @throws UsageError */
export const requireLink = (model: LinkModel): void => may.requireOptions("link", model, knownLink);

function areSpeeds(value: unknown): boolean {
  return may.isObject(value) && Object.values(value).every((each) => may.finite.accepts(each) && (each as number) > 0);
}

function areFaultKinds(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => faultKinds.includes(each as FaultKind));
}
