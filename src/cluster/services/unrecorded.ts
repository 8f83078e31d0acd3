/** Placeholders for a host's names of messages: a member names and records messages at the transport. */
import type { SendResult } from "../../runtime/transport/tcp.ts";

export const UNNAMED = (): string => "";
export const UNTOLD: SendResult = { id: UNNAMED, lost: null };
export const UNSENT: SendResult = { id: UNNAMED, lost: "down" };
