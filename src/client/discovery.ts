/** Learns from the cluster at which endpoints members serve clients, on the first connection and after every change. */
import { endpointTold, MAX_ENDPOINTS } from "../cluster/clients/endpoints.ts";
import { ASK_AGAIN_MS, isPassing } from "../cluster/services/state/refusals.ts";
import { ENDPOINTS } from "../protocols/service/coordination-service/operations.ts";
import { sleep } from "../runtime/platform/sleep.ts";
import type { RemoteService } from "./remote-service.ts";

const ALL = { type: "range", map: ENDPOINTS, from: "", to: null, limit: MAX_ENDPOINTS } as const;

/** @param given the endpoints passed to `connect()` */
export function followEndpoints(service: RemoteService, given: readonly string[]): void {
  let isReading = false;
  let isOutdated = true;
  const learn = async (): Promise<void> => {
    isOutdated = false;
    const { answer } = await service.query(ALL);
    const values = answer.type === "entries" ? answer.entries.map(({ value }) => value) : [];
    service.link.learn(values.flatMap((value) => endpointTold(value, given) ?? []));
  };
  /** Reads until the endpoints are current or the client has been closed. */
  const read = async (): Promise<void> => {
    if (isReading) return;
    isReading = true;
    while (isOutdated && service.closed === null) {
      try {
        await learn();
      } catch (error) {
        if (!isPassing(error)) break;
        isOutdated = true;
        await sleep(service.platform.timers, ASK_AGAIN_MS, { ref: false });
      }
    }
    isReading = false;
  };
  service.listen((event) => {
    if (event.type !== "restored" && !(event.type === "changed" && event.map === ENDPOINTS)) return;
    isOutdated = true;
    void read();
  });
  service.follow("map", ENDPOINTS);
  void read();
}
