/**
 * Publishes the URLs at which members serve clients. Each member stores its URL in the log, and the leader deletes the
 * URLs of removed members.
 */
import { ENDPOINTS, type ETCD_ENDPOINTS } from "../../protocols/service/coordination-service/operations.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import type { ServiceHost } from "../services/state/service-host.ts";
import { MAX_ENDPOINTS } from "./endpoints.ts";

const AGAIN_MS = 1_000;

/** The map that contains the URLs. */
type Endpoints = typeof ENDPOINTS | typeof ETCD_ENDPOINTS;

/** Keeps the URL up to date until the service ends. */
export function announce(service: ServiceHost, map: Endpoints, url: string): void {
  const isOpen = (): boolean => service.closed === null;
  const untilDone = async (work: () => Promise<void>): Promise<void> => {
    while (isOpen()) {
      try {
        return await work();
      } catch {
        // The majority was lost, or the members are overloaded.
        await sleep(service.platform.timers, AGAIN_MS, { ref: false });
      }
    }
  };
  let changes = 0;
  let isStriking = false;
  const strikeAll = async (): Promise<void> => {
    isStriking = true;
    while (changes > 0 && isOpen()) {
      changes = 0;
      await untilDone(() => strike(service, map, isOpen));
    }
    isStriking = false;
  };
  service.listen((event) => {
    const maySomebodyBeGone = event.type === "members" || event.type === "led";
    if (!maySomebodyBeGone || service.leader !== service.self) return;
    changes += 1;
    if (!isStriking) void strikeAll();
  });
  void untilDone(() => tell(service, map, url, isOpen));
}

/** Announces the URL at which this member serves clients that use Coterie's own protocol. */
export const announceToClients = (service: ServiceHost, url: string): void => announce(service, ENDPOINTS, url);

async function tell(service: ServiceHost, map: Endpoints, url: string, isOpen: () => boolean): Promise<void> {
  const [key, value] = [String(service.self), JSON.stringify(url)];
  const { answer } = await service.query({ type: "get", map, key });
  if (answer.type === "found" && answer.entry?.value === value) return;
  await service.submit({ type: "put", map, key, value, isLeased: false }, isOpen);
}

/**
 * Deletes the URLs of removed members. It reads the URLs before the member list, because a member is on the list before
 * it announces its URL.
 */
async function strike(service: ServiceHost, map: Endpoints, isOpen: () => boolean): Promise<void> {
  const found = await service.query({ type: "range", map, from: "", to: null, limit: MAX_ENDPOINTS });
  const entries = found.answer.type === "entries" ? found.answer.entries : [];
  const { answer } = await service.query({ type: "members" });
  if (answer.type !== "members" || answer.list === null) return; // The member list has never changed.
  const listed = new Set(answer.list.members.map(({ member }) => String(member)));
  for (const { key } of entries.filter((entry) => !listed.has(entry.key)))
    await service.submit({ type: "delete", map, key }, isOpen);
}
