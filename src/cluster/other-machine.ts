/** Recognizes members whose admin pages can be reached only from their own machine, when that is not this machine. */
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { isLoopback } from "../runtime/host-port.ts";
import type { MemberPlace } from "./config.ts";

/**
 * Whether the admin address is a loopback address and the member's own address belongs to another machine. In that
 * case, the admin address on this machine belongs to another member, or to none.
 */
export async function isOnOtherLoopback({ address, admin }: MemberPlace): Promise<boolean> {
  if (!isLoopback(admin.host) || isLoopback(address.host)) return false;
  const found = await lookup(address.host, { all: true }).catch(() => []);
  const own = new Set(Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address: at }) => at)));
  return !found.some((each) => isLoopback(each.address) || own.has(each.address));
}
