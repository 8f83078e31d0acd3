/** The last things that a member does: others need not wait for what it can give back or say by itself. */
import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import type { TcpTransport } from "../../runtime/transport/tcp.ts";
import type { CoordinationError } from "./coordination-error.ts";
import type { Instances } from "./instances.ts";
import { LocalChannel } from "./local-channel.ts";
import { LocalElection } from "./local-election.ts";
import type { Sessions } from "./sessions.ts";
import type { SharedParts } from "./shared-parts.ts";
import type { SharedState } from "./state/shared-state.ts";

export interface Leaving {
  readonly platform: Pick<Platform, "clock" | "timers">;
  readonly shared: SharedParts;
  readonly instances: Instances;
  readonly state: SharedState;
  readonly sessions: Sessions;
  readonly transport: Pick<TcpTransport<never>, "peers">;
}

/** How long a leaving member waits for work under its leadership to end, and for its last messages to be taken. */
const LAST_WORK_MS = 1_000;
const LAST_WORDS_MS = 1_000;
const DRAIN_EVERY_MS = 5;

export async function leaveInOrder(of: Leaving, reason: CoordinationError): Promise<void> {
  const { shared, instances, state, sessions } = of;
  const { timers } = of.platform;
  const open = [...instances.all, ...state.elections];
  const elections = open.flatMap(({ local }) => (local instanceof LocalElection ? [local] : []));
  const lent = sessions.close();
  const worked = Promise.all(elections.map((election) => election.stopWorking(reason)));
  await Promise.race([worked, sleep(timers, LAST_WORK_MS, { ref: false })]);
  await lent; // Other processes rely on it.
  const channels = [...instances.all, ...state.channels].flatMap(({ local }) =>
    local instanceof LocalChannel ? [local] : [],
  );
  const gone = Promise.all(channels.map((channel) => channel.leave(reason)));
  await Promise.race([gone, sleep(timers, LAST_WORDS_MS, { ref: false })]);
  await state.leave(reason, shared.reachablePeers);
  instances.close(reason); // While there is a server that it can be given back to.
  instances.depart(); // Each server to come is told that nothing is held here.
  await shared.handOver();
  shared.sayFarewell();
  await drain(of);
}

/** What was said last is on its way to the members that can be reached. */
async function drain({ platform: { clock, timers }, instances, state, transport }: Leaving): Promise<void> {
  const until = clock.now() + LAST_WORDS_MS;
  const isWaiting = (): boolean =>
    !instances.isSettled ||
    !state.host.isSettled ||
    transport.peers.some(({ link, queuedBytes }) => link === "open" && queuedBytes > 0);
  while (isWaiting() && clock.now() < until) await sleep(timers, DRAIN_EVERY_MS);
}
