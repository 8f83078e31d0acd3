/** The orders over view synchrony by messages between the members. */
import type { MessageOf, Protocol } from "../../../core/protocol.ts";
import { type Shape, text } from "../../../core/shape.ts";
import { sureRoom } from "../ip-multicast/options.ts";
import { type Isis, isis } from "../isis.ts";
import { type ViewSynchronyOptions, viewSynchrony } from "../view-synchrony.ts";
import { MAX_PAYLOAD_BYTES } from "./group.ts";
import { type FlushCausal, type FlushCausalTotal, type FlushFifo, type FlushIsis, ordersOver } from "./in-views.ts";
import { type Over, over } from "./over.ts";

export type FlushFifoTotal<P = string> = Over<Isis<P>, FlushFifo<MessageOf<Isis<P>>>>;
export type { FlushCausal, FlushCausalTotal, FlushFifo, FlushIsis };

const anyText = text(MAX_PAYLOAD_BYTES);
const inViews = (options: ViewSynchronyOptions = {}) => ordersOver<ViewSynchronyOptions>(viewSynchrony, options);

export const flushFifo = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushFifo<P>> => inViews(options).fifo(payload);

export const flushCausal = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushCausal<P>> => inViews(options).causal(payload);

export const flushIsis = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushIsis<P>> => inViews(options).total(payload);

export const flushCausalTotal = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushCausalTotal<P>> => inViews(options).causalTotal(payload);

export function flushFifoTotal<P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushFifoTotal<P>> {
  const order = { begin: "outside", room: sureRoom(options?.multicast) } as const;
  return { ...over(isis(order, payload), (body) => flushFifo(options, body)), name: "fifo-total" };
}
