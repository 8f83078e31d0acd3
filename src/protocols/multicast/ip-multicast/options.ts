/** What ip-multicast can be told, and what makes sense. */

import { UsageError, unexpected } from "../../../core/errors.ts";
import { boolean, natural, nullable, oneOf, real, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";

export interface IpMulticastOptions {
  /** `inside`: all nodes are the group, for ever. `outside`: no group until `change` brings the first view. */
  begin: "inside" | "outside";
  /**
   * Whether a message waits for its sender's earlier ones. If not it is delivered as it comes, despite a gap: once, and
   * everywhere, but in no order. Views need the order.
   */
  inOrder: boolean;
  /** Whether nodes speak without being asked: of what they have received, and of what is not stable. */
  sessions: boolean;
  /** A node misses a message for between this and twice this before it asks for it: it may just be late. */
  nackMs: number;
  /** A node that is not the sender waits for between this and twice this before it repairs. More than a round trip. */
  repairMs: number;
  /** What still misses is asked for again after this, then twice this, and so on up to `maxRepeatMs`. */
  repeatMs: number;
  maxRepeatMs: number;
  /** Who has received something says so after this at most, or after so many messages, unless it has something to send anyway. */
  ackMs: number;
  ackEvery: number;
  /** Whether a message of a sender that has nothing else on its way is acknowledged at once: it may wait for that. */
  promptAcks: boolean;
  /** What is not stable is spoken of after this, then twice this, and so on up to `maxSessionMs`. */
  sessionMs: number;
  maxSessionMs: number;
  /** How often in a row without a step forward. Null: as long as the group is what it is. */
  maxRepeats: number | null;
  /** How many of its own messages a node multicasts before the first of them is stable, and how much text. */
  windowMessages: number;
  windowBytes: number;
  /** How many more wait for room. */
  maxWaiting: number;
}

const defaults: IpMulticastOptions = {
  begin: "inside",
  inOrder: true,
  sessions: true,
  nackMs: 5,
  repairMs: 25,
  repeatMs: 50,
  maxRepeatMs: 1_000,
  ackMs: 10,
  ackEvery: 16,
  promptAcks: false,
  sessionMs: 100,
  maxSessionMs: 1_000,
  maxRepeats: null,
  windowMessages: 256,
  windowBytes: 4_194_304,
  maxWaiting: 1_024,
};

const optionShape = struct<IpMulticastOptions>({
  begin: oneOf("inside", "outside"),
  inOrder: boolean,
  sessions: boolean,
  nackMs: real,
  repairMs: real,
  repeatMs: real,
  maxRepeatMs: real,
  ackMs: real,
  ackEvery: natural,
  promptAcks: boolean,
  sessionMs: real,
  maxSessionMs: real,
  maxRepeats: nullable(natural),
  windowMessages: natural,
  windowBytes: natural,
  maxWaiting: natural,
});

/** @throws UsageError */
export function settled(given: Partial<IpMulticastOptions> | undefined): IpMulticastOptions {
  const options = settle(defaults, optionShape, given, "ip-multicast");
  if (options.begin === "outside" && !options.inOrder)
    throw new UsageError("bad-option", unexpected("ip-multicast.inOrder", "true where there are views", false));
  const {
    begin: _begin,
    inOrder: _inOrder,
    sessions: _sessions,
    promptAcks: _promptAcks,
    maxRepeats: _maxRepeats,
    maxWaiting: _maxWaiting,
    ...positive
  } = options;
  for (const [name, value] of Object.entries(positive)) requirePositive(`ip-multicast.${name}`, value);
  return options;
}

/** How far a member may be ahead of the slowest: when the group changes, it says what has waited for its window, too. */
export const reachOf = ({ windowMessages, maxWaiting }: Pick<IpMulticastOptions, "windowMessages" | "maxWaiting">) =>
  windowMessages + maxWaiting;

/**
 * How many of its own that are not stable a member is sure to take, however long they are: one, and those that wait.
 * @throws UsageError
 */
export const sureRoom = (given: Partial<IpMulticastOptions> | undefined): number => settled(given).maxWaiting + 1;

/** Waits that grow twofold up to a bound, and perhaps end. */
export interface Patience {
  waitMs(times: number): number;
  /** One time more, as long as that makes a difference. */
  next(times: number): number;
  isOver(times: number): boolean;
}

export function patience(firstMs: number, maxMs: number, maxRepeats: number | null): Patience {
  const most = maxRepeats ?? Math.max(0, Math.ceil(Math.log2(maxMs / firstMs)));
  return {
    waitMs: (times) => Math.min(maxMs, firstMs * 2 ** times),
    next: (times) => Math.min(times + 1, most),
    isOver: (times) => times === maxRepeats,
  };
}

/** It asks again at even intervals, so that runs repeat themselves. */
export const evenly: Partial<IpMulticastOptions> = { repeatMs: 50, maxRepeatMs: 50, sessionMs: 50, maxSessionMs: 50 };
