/** What a world is told when it is made, and what programs and runs in it are given. */
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import type { NodeId } from "../core/protocol.ts";
import type { FaultOptions } from "./faults.ts";
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
    | Omit<JoinOptions, "id" | "members" | "tls" | "signal" | "registry" | "admin" | "multicast">
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
