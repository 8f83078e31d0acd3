/** What simulated members run, all of one release: tests of upgrades load it once for each. */
import { announceToClients } from "../cluster/clients/announce.ts";
import { ClientDoor } from "../cluster/clients/client-door.ts";
import { joinOn } from "../cluster/join.ts";
import type { Member } from "../cluster/services/api.ts";
import type { JoinedMember } from "../cluster/services/joined-member.ts";
import { newCounts } from "../runtime/metrics.ts";

export const release = {
  joinOn,
  /** The member takes clients, and tells the others' clients that it does so at this URL. */
  takeClients(member: Member, url: string): ClientDoor {
    const service = (member as JoinedMember).state.host;
    service.use();
    announceToClients(service, url);
    return new ClientDoor({ service, counts: newCounts().clients });
  },
};

export type Release = typeof release;
