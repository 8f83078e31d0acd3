/** The options of ip-multicast. */

import { natural, nullable, oneOf } from "../../../core/shape.ts";
import { count, flag, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";

export const ipMulticastOptions = optionTable(
  "ip-multicast",
  {
    begin: option(
      oneOf("inside", "outside"),
      "inside",
      "`inside`: all nodes are the group, forever; `outside`: there is no group until `change` brings the first view",
    ),
    inOrder: flag(
      true,
      "whether a message waits for earlier ones of its sender; otherwise it is delivered on arrival, once and everywhere, in no order; views need the order",
    ),
    sessions: flag(true, "whether nodes report unasked which messages they have received, and which are not stable"),
    nackMs: positive(
      5,
      "the least time, up to twice as long, that a missing message may just be late before a node asks for it",
    ),
    repairMs: positive(
      25,
      "the least time, up to twice as long, before a node that is not the sender repairs a loss; more than a round trip",
    ),
    repeatMs: positive(50, "the time after which a missing message is asked for again, doubled each time"),
    maxRepeatMs: positive(1_000, "the longest such time"),
    ackMs: positive(10, "the time after which a receipt is acknowledged, unless a message carries it"),
    ackEvery: count(16, "the number of messages after which receipts are acknowledged"),
    promptAcks: flag(
      false,
      "whether a message of a sender without others under way, which may wait for it, is acknowledged at once",
    ),
    sessionMs: positive(100, "the time after which messages that are not stable are reported, doubled each time"),
    maxSessionMs: positive(1_000, "the longest such time"),
    maxRepeats: option(
      nullable(natural),
      null,
      "how often in a row that is repeated without progress; `null`: as long as the group stays the same",
    ),
    windowMessages: count(256, "how many of its own messages a node multicasts before the first of them is stable"),
    windowBytes: count(4_194_304, "how many bytes of its own messages it multicasts before the first is stable"),
    maxWaiting: whole(1_024, "how many further messages wait for the window"),
  },
  ({ begin, inOrder }, refuse) => {
    if (begin === "outside" && !inOrder) refuse("inOrder", "true where there are views");
  },
);

export type IpMulticastOptions = OptionsOf<typeof ipMulticastOptions>;

/** How far a member may be ahead of the slowest: when the group changes, it says what has waited for its window, too. */
export const reachOf = ({ windowMessages, maxWaiting }: Pick<IpMulticastOptions, "windowMessages" | "maxWaiting">) =>
  windowMessages + maxWaiting;

/**
 * How many of its own that are not stable a member is sure to take, however long they are: one, and those that wait.
 * @throws UsageError
 */
export const sureRoom = (given: Partial<IpMulticastOptions> | undefined): number =>
  ipMulticastOptions.settle(given).maxWaiting + 1;

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
