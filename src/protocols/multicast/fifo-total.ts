/**
 * FIFO-total multicast: total order by agreement, over FIFO multicast. Every node proposes positions for a sender's
 * messages in the order they were sent, so the agreed order preserves that order. Coulouris et al. §15.4.3.
 *
 * Assumes   no crashes; reliable links, which may reorder messages; one closed group. If the carrier has views, members may crash.
 * Safety    C6 and C4: all nodes deliver in the same order, and deliver each sender's messages in the order they were
 *           sent. Integrity.
 * Liveness  validity, agreement.
 * Cost      3(N − 1) messages per multicast, as with total order alone; three message delays.
 */
import type { MessageOf, Protocol } from "../../core/protocol.ts";
import { type Shape, text } from "../../core/shape.ts";
import { type Fifo, fifo } from "./fifo.ts";
import { type Isis, isis } from "./isis.ts";
import { MAX_PAYLOAD_BYTES, type OrderOptions } from "./parts/group.ts";
import { type Over, over } from "./parts/layers.ts";

/** Vocabulary of FIFO-total multicast. */
export type FifoTotal<P = string> = Over<Isis<P>, Fifo<MessageOf<Isis<P>>>>;

/** Creates FIFO-total multicast. */
export function fifoTotal<P = string>(
  options?: Partial<OrderOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<FifoTotal<P>> {
  return { ...over(isis(options, payload), (carried) => fifo(options, carried)), name: "fifo-total" };
}
