/** The options for a world, and the parameters that its programs and runs receive. */
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import * as may from "../cluster/services/known-options.ts";
import type { NodeId } from "../core/protocol.ts";
import { type FaultKind, type FaultOptions, faultKinds } from "./faults.ts";
import type { Release } from "./release.ts";
import type { DiskModel } from "./simulated-disk.ts";
import type { LinkModel } from "./simulated-network.ts";
import type { WorldTimers } from "./world-timers.ts";

/** Options for `simulate()`. */
export interface WorldOptions {
  /** The number of members, whose ids start at 1, or a list of ids. */
  readonly members: number | readonly NodeId[];
  /** The seed for all random choices. Default: the value of `COTERIE_SEED`, or 1. */
  readonly seed?: number | undefined;
  /** The program that each member's process runs once the member has joined, and again after each restart. */
  readonly program?: Program | undefined;
  /**
   * The random faults. `random`: depending on the seed, machines crash, processes are paused, and links are cut, slow
   * or lossy. Default: no faults.
   */
  readonly faults?: "random" | FaultOptions | undefined;
  /** How all links behave. Omitted fields have the defaults given in `LinkModel`. */
  readonly network?: LinkModel | undefined;
  /** How fast all disks are. Default: a sync takes 0.2 to 2 ms. */
  readonly disk?: DiskModel | undefined;
  /**
   * How fast a machine's clocks run; a clock at 1.02 is 2 % too fast. Default: 1 or, with `faults`, off by up to 4 %.
   */
  readonly drift?: Readonly<Record<NodeId, number>> | undefined;
  /** Options that all members pass to `join()`. */
  readonly join?:
    | Partial<Omit<JoinOptions, "id" | "members" | "tls" | "signal" | "registry" | "admin" | "multicast">>
    | undefined;
  /**
   * Returns the release that a member runs from a given start on, for tests of upgrades. Default: this release for all
   * members.
   * @internal
   */
  readonly release?: ((id: NodeId) => Release) | undefined;
}

/** A program in a member's process. It ends when the process ends. After that, its promises never settle. */
export type Program = (member: Member, process: ProcessTools) => unknown;

/** The functions that a program can use. */
export interface ProcessTools extends WorldTimers {
  /** Returns the time of the machine's clock. Use it instead of `performance.now()`. */
  readonly now: () => number;
  /** Returns a random number. Use it instead of `Math.random()`. */
  readonly random: () => number;
  /** Writes a line to the world's log. */
  readonly log: (text: string) => void;
}

/** Options for `World.run()`. */
export interface RunOptions {
  /** The maximum duration of the run in virtual time, in milliseconds. Default: 10 minutes. */
  readonly limitMs?: number;
}

const count: may.Rule = {
  wanted: "a finite number of 0 or more",
  accepts: (value) => may.finite.accepts(value) && (value as number) >= 0,
};
/** The rules for `WorldOptions`. Nested options and ids are checked where they are used. */
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
  wanted: "a function, or a finite number of milliseconds, at least 0",
  accepts: (value) => may.callback.accepts(value) || count.accepts(value),
};

/** @throws UsageError if an option is invalid */
export function requireWorld(options: WorldOptions): void {
  may.requireOptions("simulate", options, known);
  const { faults, network, disk } = options;
  if (typeof faults === "object") may.requireOptions("simulate", faults, knownFaults, "faults");
  if (network !== undefined) may.requireOptions("simulate", network, knownLink, "network");
  if (disk !== undefined) may.requireOptions("simulate", disk, knownDisk, "disk");
}

/** @throws UsageError if the body or an option is invalid */
export function requireRun(body: unknown, options: RunOptions): void {
  may.requireRule("the body of run()", body, may.needed(runBody));
  may.requireOptions("run", options, knownRun);
}

/** @throws UsageError if a field is invalid */
export const requireLink = (model: LinkModel): void => may.requireOptions("link", model, knownLink);

function areSpeeds(value: unknown): boolean {
  return may.isObject(value) && Object.values(value).every((each) => may.finite.accepts(each) && (each as number) > 0);
}

function areFaultKinds(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => faultKinds.includes(each as FaultKind));
}
