/**
 * Every order over every carrier: plain links; IP multicast, whose datagrams get lost; view synchrony, in which members come and go.
 * Channels of `join()` run them, by these names in settings and on the wire; the registry has them as variants of their orders.
 */
import type { MessageOf, Protocol, Vocabulary } from "../../../core/protocol.ts";
import type { Shape } from "../../../core/shape.ts";
import type { Embedded } from "../../entry.ts";
import { watching } from "../../membership/family/watching.ts";
import { requireParts } from "../../options.ts";
import { basicMulticast } from "../basic-multicast.ts";
import { causal } from "../causal.ts";
import { causalTotal } from "../causal-total.ts";
import { fifo } from "../fifo.ts";
import { type IpMulticastOptions, ipMulticast } from "../ip-multicast/ip-multicast.ts";
import { isis } from "../isis.ts";
import { flushCausal, flushFifo } from "../parts/flush.ts";
import { over } from "../parts/over.ts";
import { causalTotalWithState, isisWithState } from "../parts/state-transfer/state-transfer.ts";
import { type ViewSynchronyOptions, viewSynchrony } from "../view-synchrony.ts";

/** `none` and `fifo` keep each sender's order at most; `causal` what depends on what; `total` is the same everywhere. */
export type Order = "none" | "fifo" | "causal" | "total" | "causal-total";
export type Carrier = "links" | "multicast" | "views";

/** Of the carrier: `multicast` where there is IP multicast below, `views` where there are views. */
export type StackOptions = ViewSynchronyOptions;

export interface Stack extends Embedded {
  readonly algorithm: string;
  readonly order: Order;
  readonly carrier: Carrier;
  readonly make: (options?: StackOptions) => ReturnType<Embedded["make"]>;
}

const PART = "multicast";

const options: Readonly<Record<Carrier, readonly string[]>> = {
  links: [],
  multicast: ["multicast"],
  views: ["multicast", "views"],
};

/** Views are told of members that do not answer, and their members rely on each other. */
const stack = (order: Order, carrier: Carrier, algorithm: string, make: (options: StackOptions) => unknown): Stack => ({
  algorithm,
  order,
  carrier,
  make(given = {}) {
    requireParts(algorithm, given, options[carrier]);
    return make(given) as never;
  },
  part: PART,
  wires: () => (carrier === "views" ? watching(PART) : {}),
  forgotten: "together",
  lease: null,
  floor: null,
});

/** Where a message is settled once every member has it. With an agreed order it is settled when it has been delivered. */
const prompt = ({ multicast, ...others }: StackOptions) => ({
  ...others,
  multicast: { promptAcks: true, ...multicast },
});

const overMulticast = <U extends Vocabulary>(upper: Protocol<U>, carrier?: Partial<IpMulticastOptions>) =>
  over(upper, (payload) => ipMulticast<MessageOf<U>>(carrier, payload));

export const stacks: readonly Stack[] = [
  stack("none", "links", "basic-multicast", () => basicMulticast()),
  stack("fifo", "links", "fifo", () => fifo()),
  stack("causal", "links", "causal", () => causal()),
  stack("total", "links", "isis", () => isis()),
  stack("causal-total", "links", "causal-total", () => causalTotal()),
  stack("none", "multicast", "ip-multicast", (given) => ipMulticast(prompt(given).multicast)),
  stack("fifo", "multicast", "fifo over ip-multicast", (given) => overMulticast(fifo(), prompt(given).multicast)),
  stack("causal", "multicast", "causal over ip-multicast", (given) => overMulticast(causal(), prompt(given).multicast)),
  stack("total", "multicast", "isis over ip-multicast", ({ multicast }) => overMulticast(isis(), multicast)),
  stack("causal-total", "multicast", "causal-total over ip-multicast", ({ multicast }) => ({
    ...over(isis(), <P>(payload: Shape<P>) => overMulticast(causal<P>({}, payload), multicast)),
    name: "causal-total",
  })),
  stack("none", "views", "view-synchrony", (given) => viewSynchrony(prompt(given))),
  stack("fifo", "views", "fifo over view-synchrony", (given) => flushFifo(prompt(given))),
  stack("causal", "views", "causal over view-synchrony", (given) => flushCausal(prompt(given))),
  stack("total", "views", "isis over view-synchrony", (given) => isisWithState(given)),
  stack("causal-total", "views", "causal-total over view-synchrony", (given) => causalTotalWithState(given)),
];

export const stackOf = (order: Order, carrier: Carrier): Stack =>
  stacks.find((each) => each.order === order && each.carrier === carrier) as Stack;
