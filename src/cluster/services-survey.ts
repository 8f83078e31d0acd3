/**
 * Combines the status of members that serve elections, locks and channels: which members are up, which names are held, who
 * is in each channel.
 */

import type { NodeId } from "../core/protocol.ts";
import { formatHostPort } from "../runtime/host-port.ts";
import type { Refused } from "../runtime/transport/identity.ts";
import { askServiceStatus, type ServiceStatus } from "./admin-client.ts";
import type { ServiceConfig } from "./config.ts";

export interface ServiceNode {
  readonly id: NodeId;
  readonly pid: number | null;
  readonly alive: boolean;
  /** The leader of the log, as far as this member knows. */
  readonly leader: NodeId | null;
  /** Whether this member reaches a majority; null if it does not answer. */
  readonly hasQuorum: boolean | null;
  readonly address: string;
  /** Null if the config has none. */
  readonly admin: string | null;
  /** The nodes that it exchanges no messages with; empty if it does not answer. */
  readonly refusals: readonly Refused[];
}

/** One election, lock or channel, as the answering members know it. */
interface ServiceInstance extends Pick<ServiceStatus["instances"][number], "kind" | "name"> {
  /** The holder or leader; null if it is not among the answering members. */
  readonly holder: NodeId | null;
  readonly token: number | null;
  /** Waiters at all these members; for a channel, messages that wait to be sent. */
  readonly waiting: number;
  /** For a channel: the latest view of any of them. */
  readonly channel?: { readonly view: number; readonly members: readonly NodeId[] };
}

export interface ServicesStatus {
  readonly cluster: string;
  readonly protocol: "services";
  readonly nodes: readonly ServiceNode[];
  readonly instances: readonly ServiceInstance[];
}

/** A member of the config, and its answer; null if there was none. */
export interface AskedMember extends Pick<ServiceNode, "id" | "address" | "admin"> {
  readonly known: ServiceStatus | null;
}

export async function servicesStatus(config: ServiceConfig, timeoutMs: number): Promise<ServicesStatus> {
  return statusFrom(config, await askMembers(config, timeoutMs));
}

/** Asks every member, at its admin address in the config. */
export function askMembers({ cluster, members }: ServiceConfig, timeoutMs: number): Promise<readonly AskedMember[]> {
  const asked = Object.entries(members).map(async ([key, member]) => {
    const admin = member.admin.port === 0 ? null : `http://${formatHostPort(member.admin)}`;
    const answer = admin === null ? null : await askServiceStatus(admin, timeoutMs);
    const id = Number(key);
    const known = answer?.id === id && answer.cluster === cluster ? answer : null;
    return { id, admin, known, address: formatHostPort(member.address) };
  });
  return Promise.all(asked);
}

export function statusFrom({ cluster }: ServiceConfig, found: readonly AskedMember[]): ServicesStatus {
  const nodes = found.map(({ id, admin, known, address }): ServiceNode => {
    const { pid = null, leader = null, hasQuorum = null, refusals = [] } = known ?? {};
    return { id, pid, alive: known !== null, leader, hasQuorum, address, admin, refusals };
  });
  const answers = found.flatMap(({ known }) => (known === null ? [] : [known]));
  return { cluster, protocol: "services", nodes, instances: instancesOf(answers) };
}

function instancesOf(answers: readonly ServiceStatus[]): readonly ServiceInstance[] {
  const found = new Map<string, ServiceInstance>();
  for (const { id, instances } of answers)
    for (const { kind, name, isHeld, token, waiting, channel } of instances) {
      const key = JSON.stringify([kind, name]);
      const before = found.get(key) ?? { kind, name, holder: null, token: null, waiting: 0 };
      const holder = isHeld ? { holder: id, token } : {};
      const latest = latestOf(before.channel, channel);
      found.set(key, { ...before, ...holder, ...latest, waiting: before.waiting + waiting });
    }
  return [...found.values()].sort((a, b) => compare(a.kind, b.kind) || compare(a.name, b.name));
}

/** A member in no view may not know the latest. */
function latestOf(
  before: ServiceInstance["channel"],
  here: ServiceStatus["instances"][number]["channel"],
): Pick<ServiceInstance, "channel"> {
  if (here === undefined || here.view === null || here.state === "outside" || here.state === "left") return {};
  if (before !== undefined && here.view < before.view) return {};
  return { channel: { view: here.view, members: here.members } };
}

const compare = (a: string, b: string): number => Number(a > b) - Number(a < b);
