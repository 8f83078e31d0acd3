/** The code that simulated members run, all from the same release. Upgrade tests load one such module per release. */
import { announceToClients } from "../cluster/clients/announce.ts";
import { ClientDoor } from "../cluster/clients/client-door.ts";
import { joinOn } from "../cluster/join.ts";
import type { Member } from "../cluster/services/api.ts";
import type { JoinedMember } from "../cluster/services/joined-member.ts";
import { newCounts } from "../runtime/metrics.ts";

export const release = {
  joinOn,
  /** Makes the member serve clients, and announces this URL to the clients of other members. */
  takeClients(member: Member, url: string): ClientDoor {
    const service = (member as JoinedMember).state.host;
    service.use();
    announceToClients(service, url);
    return new ClientDoor({ service, counts: newCounts().clients });
  },
};

/** The parts of a release that a world needs. */
export type Release = typeof release;
