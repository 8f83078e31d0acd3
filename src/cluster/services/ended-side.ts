/** What a program gets by a name that it first uses after its member has ended: every call rejects with the reason. */
import type { Carrier } from "../../protocols/multicast/family/stacks.ts";
import type { Setting } from "./algorithms.ts";
import type { Order } from "./channel-api.ts";
import { boundsWithin, MAX_PAYLOAD_BYTES } from "./channel-text.ts";
import type { CoordinationError } from "./coordination-error.ts";
import type { Engine, LocalSide } from "./engine.ts";
import { LocalChannel } from "./local-channel.ts";
import { LocalElection } from "./local-election.ts";
import { LocalMutex } from "./local-mutex.ts";

type Around = Pick<Engine, "platform" | "self" | "maxWaiters" | "counts">;

const closed = <L extends LocalSide>(local: L, reason: CoordinationError): L => {
  local.close(reason);
  return local;
};

/** @param reason why the member has ended */
export function endedSide(setting: Setting, around: Around, reason: CoordinationError): LocalSide {
  const engine = deadEngine(setting, around);
  if (setting.kind === "channel") return closed(new LocalChannel(engine), reason);
  return closed(setting.kind === "mutex" ? new LocalMutex(engine) : new LocalElection(engine), reason);
}

export function endedLogChannel(name: string, order: Order, around: Around, reason: CoordinationError): LocalChannel {
  const options = JSON.stringify({ transport: "log" });
  const engine = deadEngine({ kind: "channel", name, algorithm: "log-multicast", options }, around);
  const carrier: Carrier | "log" = "log";
  return closed(new LocalChannel(engine, { order, carrier }), reason);
}

const deadEngine = (setting: Setting, { platform, self, maxWaiters, counts }: Around): Engine => ({
  ...{ setting, platform, self, maxWaiters, counts },
  peers: [],
  leader: null,
  isSettled: true,
  takes: () => false,
  command() {},
  hasRoom: () => false,
  bounds: () => boundsWithin(2 * MAX_PAYLOAD_BYTES, 1),
  sayLeader() {},
  sayPressure() {},
});
