/** Registry entries for services, which are systems that offer more than one primitive. */
import { boundedRaft } from "./consensus/raft/bounded.ts";
import { entry, type RegistryEntry } from "./entry.ts";
import { mutualExclusion } from "./family.ts";
import { serviceShown } from "./headlines.ts";
import { coordinationSystem, serviceModel } from "./service/coordination-service/coordination-service.ts";

export const services: Readonly<Record<string, RegistryEntry>> = {
  "coordination-service": entry(
    mutualExclusion,
    "keys, locks, queues and sessions, replicated through a Raft log and embedded in the application",
    coordinationSystem,
    {
      model: serviceModel(),
      variants: {
        bounded: {
          summary: "on a log whose elections terminate, for the checker",
          model: serviceModel(boundedRaft),
        },
      },
      mustStart: true,
      check: { variant: "bounded", maxTimeouts: 1 },
      shown: serviceShown,
    },
  ),
};
