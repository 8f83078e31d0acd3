/**
 * Combines the status of the members of a `join()` cluster: which members are running, which locks and leaderships are
 * held, and which members are in each channel.
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
  /** Whether this member can reach a majority. Null if the member does not answer. */
  readonly hasQuorum: boolean | null;
  readonly address: string;
  /** The URL of the member's admin pages. Null if the config sets no fixed port for them. */
  readonly admin: string | null;
  /** The nodes that the member exchanges no messages with. Empty if the member does not answer. */
  readonly refusals: readonly Refused[];
}

/** An election, lock or channel, combined from the members' answers. */
interface ServiceInstance extends Pick<ServiceStatus["instances"][number], "kind" | "name"> {
  /** The holder or leader. Null if it is not among the answering members. */
  readonly holder: NodeId | null;
  readonly token: number | null;
  /** The total across the answering members: waiting calls or, for a channel, messages waiting to be sent. */
  readonly waiting: number;
  /** For a channel, the latest view that an answering member has reported. */
  readonly channel?: { readonly view: number; readonly members: readonly NodeId[] };
}

/** The status of a `join()` cluster. */
export interface ServicesStatus {
  readonly cluster: string;
  readonly protocol: "services";
  readonly nodes: readonly ServiceNode[];
  readonly instances: readonly ServiceInstance[];
}

/** A member in the config, and its answer. Null if the member did not answer. */
export interface AskedMember extends Pick<ServiceNode, "id" | "address" | "admin"> {
  readonly known: ServiceStatus | null;
  /** The member that answered at this member's admin address instead. Null if there is none. */
  readonly other: Pick<ServiceStatus, "id" | "cluster"> | null;
}

/** Requests every member's status, and combines the answers. */
export async function servicesStatus(config: ServiceConfig, timeoutMs: number): Promise<ServicesStatus> {
  return statusFrom(config, await askMembers(config, timeoutMs));
}

/** Requests every member's status from its configured admin address. */
export function askMembers({ cluster, members }: ServiceConfig, timeoutMs: number): Promise<readonly AskedMember[]> {
  const asked = Object.entries(members).map(async ([key, member]) => {
    const admin = member.admin.port === 0 ? null : `http://${formatHostPort(member.admin)}`;
    const answer = admin === null ? null : await askServiceStatus(admin, timeoutMs);
    const id = Number(key);
    const known = answer?.id === id && answer.cluster === cluster ? answer : null;
    return { id, admin, known, other: known === null ? answer : null, address: formatHostPort(member.address) };
  });
  return Promise.all(asked);
}

/** Combines the members' answers. */
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

/**
 * Returns the later of two views of a channel. Ignores `here` if its member is not in the group, because that member
 * may have missed later views.
 */
function latestOf(
  before: ServiceInstance["channel"],
  here: ServiceStatus["instances"][number]["channel"],
): Pick<ServiceInstance, "channel"> {
  if (here === undefined || here.view === null || here.state === "outside" || here.state === "left") return {};
  if (before !== undefined && here.view < before.view) return {};
  return { channel: { view: here.view, members: here.members } };
}

const compare = (a: string, b: string): number => Number(a > b) - Number(a < b);
