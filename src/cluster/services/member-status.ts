/** A member's status, as plain data. */
import { formatHostPort } from "../../runtime/host-port.ts";
import { standingOf } from "../../runtime/transport/identity.ts";
import type { TcpTransport } from "../../runtime/transport/tcp.ts";
import type { MemberStatus } from "./api.ts";
import type { MemberDetector } from "./member-detector.ts";
import type { Membership } from "./membership.ts";
import type { SharedState } from "./state/shared-state.ts";

interface Parts {
  readonly detector: MemberDetector;
  readonly service: SharedState;
  readonly transport: Pick<TcpTransport<never>, "address" | "peers">;
}

export const statusOf = (
  { id, config, identity, known, founders }: Membership,
  { detector, service, transport }: Parts,
  state: MemberStatus["state"],
  uptimeMs: number,
): MemberStatus => ({
  id,
  cluster: config.cluster,
  address: formatHostPort(transport.address),
  state,
  peers: transport.peers.map((peer) => ({ ...peer, suspected: detector.isSuspected(peer.id) })),
  voters: known.list?.voters ?? founders,
  reachable: detector.reachable,
  hasQuorum: detector.hasQuorum,
  ...standingOf(identity),
  leader: service.host.leader,
  instances: service.inUse,
  shared: service.status,
  uptimeMs: Math.round(uptimeMs),
});
