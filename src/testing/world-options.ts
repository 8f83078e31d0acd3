/** The options of a world, and what its programs and runs receive. */
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import * as may from "../cluster/services/known-options.ts";
import type { NodeId } from "../core/protocol.ts";
import { type FaultKind, type FaultOptions, faultKinds } from "./faults.ts";
import type { Release } from "./release.ts";
import type { DiskModel } from "./simulated-disk.ts";
import type { LinkModel } from "./simulated-network.ts";
import type { WorldTimers } from "./world-timers.ts";

/** Options of `simulate()`. */
export interface WorldOptions {
  /** The number of members, with ids from 1, or a list of ids. */
  readonly members: number | readonly NodeId[];
  /** Default: the value of `COTERIE_SEED`, or 1. */
  readonly seed?: number | undefined;
  /** The program that each member's process runs once it has joined, again after each restart. */
  readonly program?: Program | undefined;
  /**
   * `random`: machines crash, processes are paused, and links are cut, slow or lossy, as the seed decides. Default: no
   * faults.
   */
  readonly faults?: "random" | FaultOptions | undefined;
  /** The behavior of all links. */
  readonly network?: LinkModel | undefined;
  readonly disk?: DiskModel | undefined;
  /** The speed of a machine's clocks: 1.02 is 2 % too fast. Default: 1; with `faults`, up to 4 % wrong. */
  readonly drift?: Readonly<Record<NodeId, number>> | undefined;
  /** Options that all members pass to `join()`. */
  readonly join?:
    | Partial<Omit<JoinOptions, "id" | "members" | "tls" | "signal" | "registry" | "admin" | "multicast">>
    | undefined;
  /** The release that each member runs from a start on, for tests of upgrades. Default: this one for all. @internal */
  readonly release?: ((id: NodeId) => Release) | undefined;
}

/** A program of a member's process. It ends when its process ends: after that, its promises never settle. */
export type Program = (member: Member, process: ProcessTools) => unknown;

/** The surroundings of a program. */
export interface ProcessTools extends WorldTimers {
  /** The machine's clock, in place of `performance.now()`. */
  readonly now: () => number;
  /** In place of `Math.random()`. */
  readonly random: () => number;
  /** Writes into the world's log. */
  readonly log: (text: string) => void;
}

/** Options of `World.run()`. */
export interface RunOptions {
  /** The limit of virtual time. Default: 10 minutes. */
  readonly limitMs?: number;
}

const count: may.Rule = {
  wanted: "a finite number of 0 or more",
  accepts: (value) => may.finite.accepts(value) && (value as number) >= 0,
};
/** Nested options and ids are checked where they are used. */
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
  may.requireRule("the body of run()", body, may.needed(runBody));
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
