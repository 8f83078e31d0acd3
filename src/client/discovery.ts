/** Where members serve clients, as the cluster says: read when a client has a member, and again whenever it has changed or may have. */
import { endpointTold, MAX_ENDPOINTS } from "../cluster/clients/endpoints.ts";
import { ENDPOINTS } from "../protocols/service/coordination-service/operations.ts";
import type { RemoteService } from "./remote-service.ts";

const ALL = { type: "range", map: ENDPOINTS, from: "", to: null, limit: MAX_ENDPOINTS } as const;

/** @param given where the client was told to begin. */
export function followEndpoints(service: RemoteService, given: readonly string[]): void {
  let isReading = false;
  let isOutdated = true;
  const read = async (): Promise<void> => {
    if (isReading) return;
    isReading = true;
    try {
      while (isOutdated) {
        isOutdated = false;
        const { answer } = await service.query(ALL);
        const values = answer.type === "entries" ? answer.entries.map(({ value }) => value) : [];
        service.link.learn(values.flatMap((value) => endpointTold(value, given) ?? []));
      }
    } catch {
      // The client is closed, or has asked for too much at once: then it reads at the next change.
    } finally {
      isReading = false;
    }
  };
  service.listen((event) => {
    if (event.type !== "restored" && !(event.type === "changed" && event.map === ENDPOINTS)) return;
    isOutdated = true;
    void read();
  });
  service.follow("map", ENDPOINTS);
  void read();
}
