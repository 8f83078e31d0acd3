/** What a member runs once for all names. */
import { epochBully } from "../../protocols/election/epoch-bully/epoch-bully.ts";
import { type AnyProtocol, heartbeat } from "../../protocols/index.ts";
import { coordinationService } from "../../protocols/service/coordination-service/coordination-service.ts";
import type { MachineDefinitions } from "../../protocols/service/coordination-service/machines.ts";
import type { Membership } from "./membership.ts";
import { detectorOptions, leaseOptions, serviceOptions } from "./timing.ts";

export interface SharedProtocols {
  readonly detector: AnyProtocol;
  /** The election of who serves `elected-server`, among the founders; null where this member keeps no journal. */
  readonly leadership: AnyProtocol | null;
  /** The replicated service; null where this member keeps no journal. */
  readonly service: AnyProtocol | null;
}

/**
 * Who keeps no journal cannot take part in what rests on one; that all do or none does is seen to by the hand-shake.
 * @param machines of the caller's own, to be filled later.
 */
export function sharedProtocols(
  { journal, timing, founders, known, id, config }: Membership,
  machines: MachineDefinitions,
): SharedProtocols {
  const detector = heartbeat(detectorOptions(timing)) as never as AnyProtocol;
  if (journal === null) return { detector, leadership: null, service: null };
  // A newcomer votes as soon as the log says so, and not before.
  const isNewcomer = founders.length === 0;
  const first = known.list?.voters ?? Object.keys(config.members).map(Number);
  const others = first.filter((member) => member !== id);
  const { session = {}, log = {} } = serviceOptions(timing);
  return {
    detector,
    leadership: epochBully({ takesOver: false, ...leaseOptions(timing, "epoch-bully") }),
    service: coordinationService({ session, log: { ...log, voters: isNewcomer ? others : founders } }, machines),
  };
}
