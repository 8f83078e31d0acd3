/** How things stand at a member, as plain data. */
import { formatHostPort } from "../../runtime/host-port.ts";
import { standingOf } from "../../runtime/transport/identity.ts";
import type { TcpTransport } from "../../runtime/transport/tcp.ts";
import type { MemberStatus } from "./api.ts";
import type { Instances } from "./instances.ts";
import type { Membership } from "./membership.ts";
import type { SharedParts } from "./shared-parts.ts";
import type { SharedState } from "./state/shared-state.ts";

interface Parts {
  readonly shared: SharedParts;
  readonly service: SharedState;
  readonly instances: Instances;
  readonly transport: Pick<TcpTransport<never>, "address" | "peers">;
}

export const statusOf = (
  { id, config, identity, known, founders }: Membership,
  { shared, service, instances, transport }: Parts,
  state: MemberStatus["state"],
  uptimeMs: number,
): MemberStatus => ({
  id,
  cluster: config.cluster,
  address: formatHostPort(transport.address),
  state,
  peers: transport.peers.map((peer) => ({ ...peer, suspected: shared.isSuspected(peer.id) })),
  voters: known.list?.voters ?? founders,
  reachable: shared.reachable,
  hasQuorum: shared.hasQuorum,
  ...standingOf(identity),
  lockServer: service.host.leader,
  instances: [...instances.all.map(({ status }) => status), ...service.inUse],
  shared: service.status,
  uptimeMs: Math.round(uptimeMs),
});
