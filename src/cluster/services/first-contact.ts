/** Makes a starting member wait for its peers. */
import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";

/** The maximum time that a starting member waits for its peers. */
const FIRST_CONTACT_MS = 250;

/** Waits until running peers are connected, before the first message is sent. Does not wait for paused peers. */
export async function firstContact(
  transport: { tried(): Promise<unknown> },
  { timers }: Pick<Platform, "timers">,
  signal: AbortSignal | undefined,
): Promise<void> {
  await Promise.race([transport.tried(), sleep(timers, FIRST_CONTACT_MS, { ref: false, signal })]);
}
