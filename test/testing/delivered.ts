/**
 * Records the messages that channels delivered to each incarnation of each member, and checks the guarantees for order
 * and views.
 */
import {
  type GroupEntry,
  type GroupRecord,
  virtualSynchrony,
  withCountedViews,
} from "../../src/history/virtual-synchrony.ts";
import type { ChannelMessage, ChannelView, NodeId, Order } from "../../src/index.ts";

/**
 * A message, with its position among the messages from its process, and the last message that its process had read from
 * each other process.
 */
export interface Sent {
  readonly sender: string;
  readonly number: number;
  readonly read: Readonly<Record<string, number>>;
}

/** One process of a member, and how it saw a channel. */
export interface Witness {
  readonly name: string;
  readonly node: NodeId;
  readonly messages: ChannelMessage<Sent>[];
  readonly views: ChannelView[];
}

const text = ({ sender, number }: Sent): string => `${sender}#${number}`;

/** Returns the violations, one per line. A node's runs must be in chronological order. */
export function channelProblems(order: Order, witnesses: readonly Witness[], neverSent: ReadonlySet<string>): string[] {
  const records = withCountedViews(witnesses.map((witness, incarnation) => recordOf(witness, incarnation)));
  const sending = order === "none" ? undefined : order.startsWith("causal") ? "causal" : "fifo";
  return [
    ...virtualSynchrony(records, { sending, total: order.endsWith("total") }).map(({ what }) => what),
    ...witnesses.flatMap(({ name, messages }) =>
      messages.flatMap(({ payload }) =>
        neverSent.has(text(payload)) ? [`${name} was delivered ${text(payload)}, which was said never to be sent`] : [],
      ),
    ),
  ];
}

/** Messages and views reach a program through two iterators. A message belongs to the view that it names. */
function recordOf({ node, messages, views }: Witness, incarnation: number): GroupRecord {
  const log: GroupEntry[] = [];
  let current: number | null = null;
  for (const { view, members, state } of views) {
    if (state === "stalled") continue; // While the group is stalled, the view does not change.
    const now = state === "outside" || state === "left" || !members.includes(node) ? null : view;
    if (now === current) continue;
    if (now === null) log.push({ ejected: true });
    else
      log.push(
        { installed: { view: now, members } },
        ...messages.filter((message) => message.view === now).map(deliveryOf),
      );
    current = now;
  }
  return { node, incarnation, log };
}

const deliveryOf = ({ id, from, payload: { sender, number, read } }: ChannelMessage<Sent>): GroupEntry => ({
  delivered: { id, from, sent: { by: sender, number, after: read } },
});
