/** Between an instance and the side of it that this process uses: what either may ask of the other. */
import type { NodeId, Tagged } from "../../core/protocol.ts";
import type { Counts } from "../../runtime/metrics.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { Setting } from "./algorithms.ts";
import type { InstanceStatus, LeaderChange } from "./api.ts";
import type { Transport } from "./channel-api.ts";
import type { Bounds } from "./channel-text.ts";
import type { CoordinationError } from "./coordination-error.ts";

/** What a local side may ask of the instance that it belongs to. */
export interface Engine {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  readonly setting: Setting;
  readonly self: NodeId;
  readonly peers: readonly NodeId[];
  readonly maxWaiters: number;
  readonly counts: Pick<Counts, "locks" | "leaderships">;
  /** The leader that the algorithm follows at this moment, whatever events are on their way. */
  readonly leader: NodeId | null;
  /** Whether all its events have been told. */
  readonly isSettled: boolean;
  takes(command: string): boolean;
  command(command: Tagged): void;
  /** Whether there is room on the links to these members, as far as they can be heard of. */
  hasRoom(members: readonly NodeId[]): boolean;
  /** What fits one multicast over that transport. */
  bounds(transport: Transport): Bounds;
  /** Who leads an election has changed in this member's eyes. */
  sayLeader(change: LeaderChange<number | null>): void;
  /** Tells the other members whether readers of this channel keep up here. */
  sayPressure(isFull: boolean): void;
}

/** An event of an algorithm: whatever else it carries is looked at by name. */
export type AlgorithmEvent = Tagged & Readonly<Record<string, unknown>>;

/** The side of an instance that this process uses. */
export interface LocalSide {
  /** `until`: how long a confirmation lasts, on the platform's clock; null if it has run out. */
  onEvent(event: AlgorithmEvent, until: number | null): void;
  readonly held: Pick<InstanceStatus, "token" | "isHeld" | "waiting">;
  /** Whether anybody in this process waits for it, has it, or reads it. */
  readonly isUsed: boolean;
  /** Nobody uses it, and its instance is gone: using it again opens another. */
  retire(): void;
  /** Waiters are told so, what is held is lost. */
  close(reason: CoordinationError): void;
}
