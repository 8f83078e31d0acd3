/** Placeholders for a host's message names. A member's messages are named and recorded at the transport instead. */
import type { SendResult } from "../../runtime/transport/tcp.ts";

/** Returns the name of a message that is not recorded. */
export const UNNAMED = (): string => "";
/** The result of a send that is queued, or that is recorded at the transport. */
export const UNTOLD: SendResult = { id: UNNAMED, lost: null };
/** The result of a send to a node that is not a peer. */
export const UNSENT: SendResult = { id: UNNAMED, lost: "down" };
