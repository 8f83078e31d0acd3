/**
 * Lets a member leave. If possible, the member releases its grants and announces its departure, so that other members
 * do not have to wait.
 */
import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import type { TcpTransport } from "../../runtime/transport/tcp.ts";
import type { CoordinationError } from "./coordination-error.ts";
import type { MemberDetector } from "./member-detector.ts";
import type { Sessions } from "./sessions.ts";
import type { SharedState } from "./state/shared-state.ts";

/** The parts of a member that take part in leaving. */
export interface Leaving {
  readonly platform: Pick<Platform, "clock" | "timers">;
  readonly detector: MemberDetector;
  readonly state: SharedState;
  readonly sessions: Sessions;
  readonly transport: Pick<TcpTransport<never>, "peers">;
}

/** How long a leaving member waits for work under its leadership to end, and for its last messages to be sent. */
const LAST_WORK_MS = 1_000;
const LAST_WORDS_MS = 1_000;
const DRAIN_EVERY_MS = 5;

/** Releases the member's grants, leaves its channels, and ends its session. Each step has a timeout. */
export async function leaveInOrder(of: Leaving, reason: CoordinationError): Promise<void> {
  const { detector, state, sessions } = of;
  const { timers } = of.platform;
  const lent = sessions.close();
  const worked = Promise.all(state.elections.map(({ local }) => local.stopWorking(reason)));
  await Promise.race([worked, sleep(timers, LAST_WORK_MS, { ref: false })]);
  await lent; // Other processes rely on these grants.
  const left = Promise.all(state.channels.map(({ local }) => local.leave(reason)));
  await Promise.race([left, sleep(timers, LAST_WORDS_MS, { ref: false })]);
  await state.leave(reason, detector.reachablePeers);
  detector.sayFarewell();
  await drain(of);
}

/** Waits until the last messages have been sent to the reachable members. */
async function drain({ platform: { clock, timers }, state, transport }: Leaving): Promise<void> {
  const until = clock.now() + LAST_WORDS_MS;
  const isWaiting = (): boolean =>
    !state.host.isSettled || transport.peers.some(({ link, queuedBytes }) => link === "open" && queuedBytes > 0);
  while (isWaiting() && clock.now() < until) await sleep(timers, DRAIN_EVERY_MS);
}
