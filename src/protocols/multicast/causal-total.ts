/**
 * Causal-total multicast: total order by agreement over causal multicast. Everywhere, a message's possible causes are
 * proposed and thus agreed before the message.
 * Birman, Schiper & Stephenson, ACM TOCS 1991; Coulouris et al. §15.4.3.
 *
 * Assumes   no crashes; reliable links, in any order; one closed group. With a carrier with views, members may crash.
 * Safety    C6 and C5: all nodes deliver in the same order, which respects happened-before. Integrity.
 * Liveness  validity, agreement.
 * Cost      3(N − 1) messages per multicast, as total order alone, two in three with N counters; three message times.
 */
import type { MessageOf, Protocol } from "../../core/protocol.ts";
import { type Shape, text } from "../../core/shape.ts";
import { type Causal, causal } from "./causal.ts";
import { type Isis, isis } from "./isis.ts";
import { MAX_PAYLOAD_BYTES, type OrderOptions } from "./parts/group.ts";
import { type Over, over } from "./parts/layers.ts";

/** Vocabulary of causal-total multicast. */
export type CausalTotal<P = string> = Over<Isis<P>, Causal<MessageOf<Isis<P>>>>;

/** Creates causal-total multicast. */
export function causalTotal<P = string>(
  options?: Partial<OrderOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<CausalTotal<P>> {
  return { ...over(isis(options, payload), (carried) => causal(options, carried)), name: "causal-total" };
}
