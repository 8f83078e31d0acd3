/** What stands where a host would name and record messages: members' are named and recorded where they meet the transport. */
import type { SendResult } from "../../runtime/transport/tcp.ts";

export const UNNAMED = (): string => "";
export const UNTOLD: SendResult = { id: UNNAMED, lost: null };
export const UNSENT: SendResult = { id: UNNAMED, lost: "down" };
