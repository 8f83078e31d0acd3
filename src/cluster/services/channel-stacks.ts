/** What runs under a channel: the algorithm of its order, over plain links, over IP multicast or over view synchrony. */
import { UsageError, unexpected } from "../../core/errors.ts";
import type { MessageOf, Protocol, Vocabulary } from "../../core/protocol.ts";
import type { Shape } from "../../core/shape.ts";
import { type AnyProtocol, basicMulticast, causal, causalTotal, fifo, isis } from "../../protocols/index.ts";
import type { ViewsOptions } from "../../protocols/membership/views/options.ts";
import { type IpMulticastOptions, ipMulticast } from "../../protocols/multicast/ip-multicast/ip-multicast.ts";
import { over } from "../../protocols/multicast/parts/over.ts";
import { causalTotalWithState, isisWithState } from "../../protocols/multicast/parts/state-transfer/state-transfer.ts";
import { type ViewSynchronyOptions, viewSynchrony } from "../../protocols/multicast/view-synchrony.ts";
import type { Order, Transport } from "./channel-api.ts";

interface Stack {
  /** In settings and on the wire. */
  readonly algorithm: string;
  readonly order: Order;
  readonly carrier: Carrier;
  /** @param views how long a change of the view waits, where there are views. */
  make(views?: Partial<ViewsOptions>): AnyProtocol;
}

/** `links` for the textbook's algorithm alone; `multicast` where datagrams get lost; `views` where members come and go. */
type Carrier = "links" | "multicast" | "views";

const stack = (
  order: Order,
  carrier: Carrier,
  algorithm: string,
  make: (views: Partial<ViewsOptions>) => unknown,
): Stack => ({ algorithm, order, carrier, make: (views = {}) => make(views) as AnyProtocol });

const MULTICAST = "ip-multicast";
const VIEWS = "view-synchrony";
/** Over a carrier with views. */
const outside = { begin: "outside" } as const;

/** Where a message is settled once every member has it. With an agreed order it is settled when it has been delivered. */
const prompt = { promptAcks: true } as const;

const overMulticast = <U extends Vocabulary>(upper: Protocol<U>, options: Partial<IpMulticastOptions> = {}) =>
  over(upper, (payload) => ipMulticast<MessageOf<U>>(options, payload));
const causalOverMulticast = <P>(payload: Shape<P>) => overMulticast(causal<P>({}, payload));

const inViews = <U extends Vocabulary>(upper: Protocol<U>, options: ViewSynchronyOptions) =>
  over(upper, (payload) => viewSynchrony<MessageOf<U>>(options, payload));

export const stacks: readonly Stack[] = [
  stack("none", "links", "basic-multicast", () => basicMulticast()),
  stack("fifo", "links", "fifo", () => fifo()),
  stack("causal", "links", "causal", () => causal()),
  stack("total", "links", "isis", () => isis()),
  stack("causal-total", "links", "causal-total", () => causalTotal()),
  stack("none", "multicast", MULTICAST, () => ipMulticast(prompt)),
  stack("fifo", "multicast", `fifo over ${MULTICAST}`, () => overMulticast(fifo(), prompt)),
  stack("causal", "multicast", `causal over ${MULTICAST}`, () => overMulticast(causal(), prompt)),
  stack("total", "multicast", `isis over ${MULTICAST}`, () => overMulticast(isis())),
  stack("causal-total", "multicast", `causal-total over ${MULTICAST}`, () => over(isis(), causalOverMulticast)),
  stack("none", "views", VIEWS, (views) => viewSynchrony({ multicast: prompt, views })),
  stack("fifo", "views", `fifo over ${VIEWS}`, (views) => inViews(fifo(outside), { multicast: prompt, views })),
  stack("causal", "views", `causal over ${VIEWS}`, (views) => inViews(causal(outside), { multicast: prompt, views })),
  stack("total", "views", `isis over ${VIEWS}`, (views) => isisWithState({ views })),
  stack("causal-total", "views", `causal-total over ${VIEWS}`, (views) => causalTotalWithState({ views })),
];

export const orders: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];

export function stackOf(order: Order, reliable: boolean, transport: Transport): Stack {
  const carrier = reliable ? "views" : transport === "udp" ? "multicast" : "links";
  return stacks.find((each) => each.order === order && each.carrier === carrier) as Stack;
}

/** Whether it sees to it itself that a multicast arrives. */
export const repairs = (algorithm: string): boolean => stackNamed(algorithm).carrier !== "links";

/** @throws UsageError that lists those there are. */
export function stackNamed(algorithm: string): Stack {
  const found = stacks.find((each) => each.algorithm === algorithm);
  if (found !== undefined) return found;
  const names = stacks.map((each) => each.algorithm).join(", ");
  throw new UsageError("unknown-algorithm", unexpected("the algorithm", `one of ${names}`, algorithm));
}
