/** What channels delivered, at each run of each member, and whether that is what their order and their views promise. */
import type { ChannelMessage, ChannelView, NodeId, Order } from "../../src/index.ts";

/** What a member sends: its place among all that its process has sent, and what it had read from each process by then. */
export interface Sent {
  readonly sender: string;
  readonly number: number;
  readonly read: Readonly<Record<string, number>>;
}

/** One process of a member, as it saw a channel. */
export interface Witness {
  readonly name: string;
  readonly node: NodeId;
  readonly messages: ChannelMessage<Sent>[];
  readonly views: ChannelView[];
}

const text = ({ sender, number }: Sent): string => `${sender}#${number}`;

/** What is wrong, a line each. */
export function channelProblems(order: Order, witnesses: readonly Witness[], neverSent: ReadonlySet<string>): string[] {
  return [
    ...witnesses.flatMap((witness) => [
      ...duplicates(witness),
      ...(order === "none" ? [] : outOfOrder(witness)),
      ...(order.startsWith("causal") ? beforeItsCause(witness) : []),
      ...witness.messages.flatMap(({ payload }) =>
        neverSent.has(text(payload))
          ? [`${witness.name} was delivered ${text(payload)}, which was said never to be sent`]
          : [],
      ),
    ]),
    ...differentViews(witnesses),
    ...differentDeliveries(witnesses, order.endsWith("total")),
  ];
}

function duplicates({ name, messages }: Witness): string[] {
  const seen = new Set<string>();
  return messages.flatMap(({ payload }) => {
    if (seen.has(text(payload))) return [`${name} was delivered ${text(payload)} twice`];
    seen.add(text(payload));
    return [];
  });
}

function outOfOrder({ name, messages }: Witness): string[] {
  const last = new Map<string, number>();
  return messages.flatMap(({ payload }) => {
    const before = last.get(payload.sender) ?? 0;
    last.set(payload.sender, Math.max(before, payload.number));
    return payload.number > before ? [] : [`${name} was delivered ${text(payload)} after #${before}`];
  });
}

/** Of what the sender had read, nothing may come later here; what never comes was of another view. */
function beforeItsCause({ name, messages }: Witness): string[] {
  const needed = new Map<string, [number, string]>();
  return messages.flatMap(({ payload }) => {
    const [by, of] = needed.get(payload.sender) ?? [0, ""];
    for (const [sender, number] of Object.entries(payload.read))
      if (number > (needed.get(sender)?.[0] ?? 0)) needed.set(sender, [number, text(payload)]);
    return payload.number <= by ? [`${name} was delivered ${text(payload)} after ${of}, whose sender had read it`] : [];
  });
}

function differentViews(witnesses: readonly Witness[]): string[] {
  const known = new Map<number, string>();
  return witnesses.flatMap(({ name, views }) =>
    views.flatMap(({ view, members }) => {
      if (view === null) return [];
      const now = members.join(", ");
      const before = known.get(view) ?? now;
      known.set(view, before);
      return before === now ? [] : [`${name} has view ${view} of ${now}, and others of ${before}`];
    }),
  );
}

/** Who goes from one view to the next has had the same in it as all who go with it; in a total order, in the same order. */
function differentDeliveries(witnesses: readonly Witness[], isTotal: boolean): string[] {
  const known = new Map<string, { by: string; what: string }>();
  return witnesses.flatMap(({ name, node, messages, views }) =>
    stepsOf(node, views).flatMap(([view, next]) => {
      const delivered = messages.flatMap((message) => (message.view === view ? [text(message.payload)] : []));
      const what = (isTotal ? delivered : delivered.sort()).join(" ");
      const step = `${view} to ${next}`;
      const other = known.get(step) ?? { by: name, what };
      known.set(step, other);
      return other.what === what
        ? []
        : [`from view ${step}, ${name} was delivered ${what}, and ${other.by} ${other.what}`];
    }),
  );
}

/** From which view to which it went with the group, without having been outside in between. */
function stepsOf(node: NodeId, views: readonly ChannelView[]): (readonly [from: number, to: number])[] {
  let last: number | null = null;
  return views.flatMap(({ view, members, state }) => {
    const from = last;
    if (view === null || state === "outside" || state === "left" || !members.includes(node)) last = null;
    else last = view;
    return from === null || last === null || from === last ? [] : [[from, last] as const];
  });
}
