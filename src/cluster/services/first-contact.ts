/** The first moments of a member that starts. */
import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";

/** How long a starting member waits for its peers at most. */
const FIRST_CONTACT_MS = 250;

/** Peers that run are connected before the first message is sent; those that are paused are not waited for. */
export async function firstContact(
  transport: { tried(): Promise<unknown> },
  { timers }: Pick<Platform, "timers">,
  signal: AbortSignal | undefined,
): Promise<void> {
  await Promise.race([transport.tried(), sleep(timers, FIRST_CONTACT_MS, { ref: false, signal })]);
}
